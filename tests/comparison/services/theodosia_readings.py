"""The job on Theodosia, as its documents say: a Burr state machine of ten actions in a chain, mounted as an MCP server over
standard input and output. Run by peers/theodosia.py: FOLDER

Burr's persister keeps the state of each session, and a session that is not in memory is begun from there.
"""
import sys
from pathlib import Path

from burr.core import ApplicationBuilder, State
from burr.core.action import action
from burr.core.persistence import SQLitePersister
from theodosia import mount

folder = Path(sys.argv[1])
STEPS = range(1, 11)
persister = SQLitePersister(db_path=str(folder / "burr.db"), table_name="burr_state", connect_kwargs={"check_same_thread": False})
persister.initialize()


def reading(step):
    name = f"reading_{step:02}"

    @action(reads=[], writes=[name])
    async def record(state: State, value: str) -> State:
        """Records the reading."""
        return state.update(**{name: value})

    return name, record


ACTIONS = dict(reading(step) for step in STEPS)


def application():
    names = list(ACTIONS)
    return (
        ApplicationBuilder()
        .with_actions(**ACTIONS)
        .with_transitions(*zip(names, names[1:]))
        .initialize_from(persister, resume_at_next_action=True, default_state={}, default_entrypoint=names[0])
        .with_state_persister(persister)
    )


mount(application, name="readings", max_sessions=10_000).run(show_banner=False)
