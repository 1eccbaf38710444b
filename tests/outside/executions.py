"""A server with a state machine of Step Functions, on the emulator of `cargo xtask aws`; and how its executions are."""
import json
import uuid
from http.client import HTTPConnection

from harness import EMULATOR, Server, Skip, cli, until

ROLE = "arn:aws:iam::000000000000:role/checkpoint"


class Orchestrated(Server):
    """A server with a table and a state machine of its own; `endpoint` is where it looks for both."""

    def __init__(self, endpoint=None, **options):
        if not EMULATOR:
            raise Skip("needs the emulator of DynamoDB and Step Functions: cargo xtask aws")
        name = f"outside-{uuid.uuid4().hex}"
        self.machine = f"arn:aws:states:us-east-1:000000000000:stateMachine:{name}"
        state = f'[backend]\nkind = "aws"\n[backend.aws]\ntable = "{name}"\nregion = "us-east-1"\nendpoint_url = "{endpoint or EMULATOR}"\nstate_machine_arn = "{self.machine}"\n'
        super().__init__(state=state, **options)
        made = self.command("aws", "init", "--execution-role", ROLE)
        assert (made["created"], made["state_machine"]) == (True, "created"), made
        again = self.command("aws", "init")
        assert (again["created"], again["state_machine"]) == (False, "unchanged"), again

    def command(self, *arguments, exits=0):
        """What a command of the binary says as JSON."""
        code, text = cli(*arguments, "--json", "--config", self.config, cwd=self.folder)
        assert code == exits, f"{arguments} exits {code}: {text}"
        return json.loads(text)

    def states(self, operation, **body):
        """One request to Step Functions, past the binary."""
        link = HTTPConnection(EMULATOR.removeprefix("http://"), timeout=20)
        signed = "AWS4-HMAC-SHA256 Credential=emulator/20260101/us-east-1/states/aws4_request, SignedHeaders=host, Signature=0"
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"AWSStepFunctions.{operation}", "authorization": signed}
        link.request("POST", "/", json.dumps(body), headers)
        answer = link.getresponse()
        text = answer.read()
        link.close()
        assert answer.status == 200, (operation, answer.status, text)
        return json.loads(text)

    def listed(self):
        """All executions of the state machine."""
        found, after = [], {}
        while True:
            page = self.states("ListExecutions", stateMachineArn=self.machine, maxResults=1000, **after)
            found += page["executions"]
            if not page.get("nextToken"):
                return found
            after = {"nextToken": page["nextToken"]}

    def executions(self, workflow, status=None):
        """How the executions of a workflow are, by fence."""
        its = {int(one["name"].rsplit("-", 1)[1]): one["status"] for one in self.listed() if f"-{workflow}-" in one["name"]}
        return its if status is None else [fence for fence, of in its.items() if of == status]

    def undone(self):
        """What a look at everything would do now, without doing it."""
        return [looked for looked in self.command("reconcile", "--once", "--dry-run")["workflows"] if looked["steps"]]

    def ends_with(self, workflow):
        """The workflow is over: its execution ends by itself, and nothing is left to do."""
        until(lambda: not self.executions(workflow, "RUNNING"), 60, "an end of all executions")
        assert self.executions(workflow, "SUCCEEDED"), self.executions(workflow)
        until(lambda: not self.undone(), 60, "a dry run with nothing to do")
        self.verify()
