"""examples/idempotent_tool: a broken stream, a killed server and a client that asks again cannot send an e-mail twice.

The official Python client calls the tool over HTTP. While the file `hold` is in the server's folder its mail system has
delivered and does not say so: the moment in which connections break and servers die. The first case is the control: the
same tool without its guard does send twice.
"""
import asyncio
import os
import subprocess

from mcp import Client as OfficialClient

from client import new_key
from harness import binary, case, clean_environment, fresh_folder, free_port, run_cases, until

META = "checkpoint/duplicate"
RETRY = "checkpoint/retry"


class Mailer:
    """The example, over one folder; survives kill9() and start() again."""

    def __init__(self, how, folder=None):
        self.how, self.folder, self.port, self.process = how, folder or fresh_folder(), free_port(), None
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def start(self):
        path = os.path.join(os.path.dirname(binary()), "idempotent_tool")
        assert os.access(path, os.X_OK), f"no {path}: cargo build -p idempotent_tool"
        self.process = subprocess.Popen([path, f"127.0.0.1:{self.port}", self.folder, self.how], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=clean_environment())
        assert self.process.stdout.readline().decode().strip() == self.url
        return self

    def kill9(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def hold(self):
        with open(os.path.join(self.folder, "hold"), "w", encoding="utf-8"):
            pass

    def go_on(self):
        os.unlink(os.path.join(self.folder, "hold"))

    def mails(self):
        folder = os.path.join(self.folder, "new")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
            code = self.process.wait(40)
            self.process.stdout.close()
            assert kind or code == 0, code


def mail(key=None, **other):
    arguments = {"to": "ann@example.com", "subject": "Pump 204", "text": "It is done.", **other}
    return {**arguments, "idempotency_key": key} if key else arguments


async def send(mailer, arguments, mode="legacy"):
    async with OfficialClient(mailer.url, mode=mode) as client:
        return await client.call_tool("send_email", arguments)


def told(result):
    """What a program is told of a refusal, or None."""
    return (result.meta or {}).get(RETRY) if result.is_error else None


def is_again(result):
    assert not result.is_error, result
    return (result.meta or {}).get(META) is True


async def broken_stream(mailer, arguments):
    """Calls, and breaks the connection once the mail is out and nobody has said so."""
    mailer.hold()
    call = asyncio.create_task(send(mailer, arguments))
    end = asyncio.get_running_loop().time() + 20
    while not mailer.mails():
        assert not call.done() and asyncio.get_running_loop().time() < end, call
        await asyncio.sleep(0.02)
    call.cancel()
    try:
        await call
        raise AssertionError("the call was answered")
    except asyncio.CancelledError:
        pass


async def insisting(mailer, arguments):
    """Sends the very same call again for as long as the server says so."""
    end = asyncio.get_running_loop().time() + 40
    while True:
        result = await send(mailer, arguments)
        refusal = told(result)
        if not refusal or refusal["retry"] != "same_call":
            return result
        assert asyncio.get_running_loop().time() < end, result
        await asyncio.sleep(min(refusal["after_ms"], 500) / 1000)


@case("control: without the guard a retry after a broken stream sends twice")
def control():
    with Mailer("unguarded") as mailer:
        asyncio.run(broken_stream(mailer, mail()))
        mailer.go_on()
        assert not asyncio.run(send(mailer, mail())).is_error
        assert len(mailer.mails()) == 2, mailer.mails()


@case("a retry after a broken stream gets the first answer, and one mail was sent")
def stream():
    for how in ("repeat", "refuse"):
        with Mailer(how) as mailer:
            arguments = mail(new_key())
            asyncio.run(broken_stream(mailer, arguments))
            mailer.go_on()
            result = asyncio.run(insisting(mailer, arguments))
            assert is_again(result), (how, result)
            assert f"<{mailer.mails()[0][:-4]}@example.com>" == result.structured_content["message_id"], result
            for mode in ("legacy", "auto"):
                assert is_again(asyncio.run(send(mailer, arguments, mode))), (how, mode)
            other = asyncio.run(send(mailer, {**arguments, "to": "bob@example.com"}))
            assert told(other)["code"] == "IDEMPOTENCY_CONFLICT", other
            assert len(mailer.mails()) == 1, (how, mailer.mails())
            assert not is_again(asyncio.run(send(mailer, mail(new_key()))))
            assert len(mailer.mails()) == 2, (how, mailer.mails())


def killed_in_the_middle(mailer, arguments):
    asyncio.run(broken_stream(mailer, arguments))
    mailer.kill9()
    mailer.go_on()
    return mailer.start()


@case("the server is killed between the mail and its record: the retry does not send it twice (repeat, with the effect key)")
def killed_repeat():
    with Mailer("repeat") as mailer:
        arguments = mail(new_key())
        killed_in_the_middle(mailer, arguments)
        result = asyncio.run(insisting(mailer, arguments))
        assert not is_again(result) and result.structured_content["sent_before"] is True, result
        assert is_again(asyncio.run(send(mailer, arguments)))
        assert len(mailer.mails()) == 1, mailer.mails()


@case("the server is killed between the mail and its record: the retry is told that nobody knows (refuse)")
def killed_refuse():
    with Mailer("refuse") as mailer:
        arguments = mail(new_key())
        killed_in_the_middle(mailer, arguments)
        for _ in range(2):
            result = asyncio.run(insisting(mailer, arguments))
            assert told(result) == {"code": "OUTCOME_UNKNOWN", "retry": "no"}, result
        assert len(mailer.mails()) == 1, mailer.mails()


@case("a server that is killed after the record, and many callers of one key at once: one mail")
def many():
    with Mailer("repeat") as mailer:
        arguments = mail(new_key())

        async def at_once():
            return await asyncio.gather(*(insisting(mailer, arguments) for _ in range(12)))

        results = asyncio.run(at_once())
        assert sorted(map(is_again, results)) == [False] + [True] * 11, results
        mailer.kill9()
        mailer.start()
        assert is_again(asyncio.run(send(mailer, arguments)))
        assert len(mailer.mails()) == 1, mailer.mails()


@case("the key is in the schema and needed, and a call that is refused leaves it free")
def schema():
    with Mailer("refuse") as mailer:
        async def look():
            async with OfficialClient(mailer.url, mode="legacy") as client:
                return (await client.list_tools()).tools[0]

        tool = asyncio.run(look())
        assert "idempotency_key" in tool.input_schema["required"] and tool.annotations.idempotent_hint is True, tool
        assert told(asyncio.run(send(mailer, mail())))["code"] == "VALIDATION_ERROR"
        key = new_key()
        refused = asyncio.run(send(mailer, mail(key, to="nobody")))
        assert refused.is_error and told(refused) is None, refused
        assert not is_again(asyncio.run(send(mailer, mail(key))))
        until(lambda: len(mailer.mails()) == 1, what="one mail")


if __name__ == "__main__":
    run_cases()
