"""workflows-mcp: a workflow of ten Prompt blocks, one after the other."""
import json
import re
from pathlib import Path

from peers.peer import Peer
from servers import Refused, Stdio

STEPS = range(1, 11)


def workflow():
    lines = ["name: round", "description: Ten readings, one after the other", "blocks:"]
    for step in STEPS:
        lines += [f"  - id: reading_{step:02}", "    type: Prompt", f'    inputs: {{prompt: "What is reading {step}?"}}']
        if step > 1:
            lines.append(f"    depends_on: [reading_{step - 1:02}]")
    lines.append("outputs:")
    lines += [f'  reading_{step:02}: {{value: "{{{{blocks.reading_{step:02}.outputs.response}}}}", type: str}}' for step in STEPS]
    return "\n".join(lines) + "\n"


class Run:
    """A job, and the prompt that is open by its last answer; None when it is over."""

    def __init__(self, job, answer):
        self.job, self.open = job, 0
        self.seen(answer)

    def seen(self, answer):
        found = re.search(r"reading (\d+)\?", answer.get("prompt") or "")
        self.open = int(found.group(1)) if found else None


class WorkflowsMcp(Peer):
    name, licence = "workflows-mcp", "AGPL-3.0-or-later"
    purpose = "runs workflows of shell, SQL, LLM and other blocks from YAML for an agent; a Prompt block waits for an answer"
    mapping = "ten Prompt blocks in a chain; a reading is `resume_workflow(job_id, response)`, which names the job and no block; read with `get_job_status`, and where it is not over from the file that names"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.pinned("workflows-mcp", "workflows-mcp")
        program = places.environment("workflows-mcp") / "workflows-mcp"
        (folder / "flows").mkdir()
        (folder / "flows" / "round.yaml").write_text(workflow())
        self.server = Stdio([program], folder, {"HOME": str(folder), "WORKFLOWS_TEMPLATE_PATHS": str(folder / "flows"), "WORKFLOWS_LOG_LEVEL": "WARNING"})

    async def call(self, tool, **arguments):
        answer = await self.server.call(tool, **arguments)
        if answer.get("status") in ("failure", "failed") or answer.get("error"):
            raise Refused(answer.get("error") or str(answer))
        return answer

    async def open(self, run, asset, key):
        answer = await self.call("execute_workflow", workflow="round")
        return Run(answer["job_id"], answer)

    async def expects(self, handle, step):
        return handle.open == step

    async def record(self, handle, step, value, key):
        handle.seen(await self.call("resume_workflow", job_id=handle.job, response=value))

    async def read(self, handle):
        status = await self.server.call("get_job_status", job_id=handle.job)
        # The status tells the outputs of what is over; of what is not, the file it names has the answers so far.
        blocks = json.loads(Path(status["result_file"]).read_text()).get("result", {}).get("blocks", {})
        answers = status["outputs"] or {name: block["outputs"].get("response") for name, block in blocks.items()}
        return [(int(name[-2:]), value) for name, value in sorted(answers.items()) if value]
