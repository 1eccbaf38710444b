"""One adapter a peer: its own public interface, used as its documents say.

An adapter says what a reading is there, what a caller repeats a call with, and where its server is. It hides nothing: what
the peer answers is what the script counts.
"""
from peers.allpepper import Allpepper
from peers.checkpoint import Checkpoint
from peers.engines import Dbos, Restate
from peers.naive import Naive
from peers.sop_mcp import SopMcp
from peers.task_orchestrator_py import TaskOrchestratorPy
from peers.theodosia import Theodosia
from peers.workflows_mcp import WorkflowsMcp

# In the order of the table. The first is ours.
PEERS = [Checkpoint, Naive, WorkflowsMcp, TaskOrchestratorPy, Allpepper, Theodosia, SopMcp, Dbos, Restate]

# Peers that were looked at and are in no registry this script may use, or do another job: name, why.
NOT_TRIED = [
    ("agent-graph-mcp 0.3 (Cargo)", "runs graphs of LLM calls. It builds and answers here: a repeated `idempotency_key` gets the same run, and with another "
     "payload `IDEMPOTENCY_CONFLICT`. After a kill -9 of its daemon in the middle of calls it could not be started again by this script, so it is not counted"),
    ("jpicklyk/task-orchestrator 3.13", "a container image or a build with Gradle; neither is in a package registry. It has an optional request id "
     "whose answers are kept in memory for ten minutes"),
    ("Moira 0.3", "a container image, or a build from its repository; it is in no package registry"),
    ("workflow-sm, fsm-voice-mcp", "in no package registry"),
    ("m2ux/workflow-server", "installed from its repository only"),
    ("Temporal, Hatchet, Inngest, Azure Durable Functions, Obelisk", "their servers are not in PyPI or npm; the MCP bridges of Temporal and Hatchet "
     "that are need one"),
    ("AWS Step Functions", "a service; refuses a started name with another input, but is no place for single readings"),
    ("dbos-mcp, durable-mcp, jamjet, workflow-mcp-server", "control planes and planners for agents: there is no record of a step to write"),
]
