"""What the script asks of every adapter."""


class Peer:
    """A peer in a folder of its own. Each call raises Gone without an answer and Refused if the answer is no."""

    # Shown in docs/comparison.md: name, version, what it is for, and how the job is done with it.
    name = version = purpose = mapping = ""
    # What a caller repeats a call with, if it is anything but the same arguments.
    key = ""
    licence = ""
    # Whether it keeps readings at all; what does not is no worse for it, but cannot be counted like the others.
    keeps = True

    def __init__(self, folder, places):
        self.folder, self.places, self.server = folder, places, None

    @property
    def keyed(self):
        """Whether a write takes a key that makes it safe to repeat."""
        return bool(self.key)

    async def start(self):
        await self.server.start()

    async def kill(self):
        await self.server.kill()

    async def open(self, run, asset, key):
        """Begins work on an asset; a handle for the other calls. Busy if somebody else has it."""
        raise NotImplementedError

    async def expects(self, handle, step):
        """False if the last answer said that another step is open, so that a careful caller does not send."""
        return True

    async def record(self, handle, step, value, key):
        """Records a reading of a step, numbered from 1."""
        raise NotImplementedError

    async def close(self, handle, key):
        """Ends the work and gives the asset free."""

    async def read(self, handle):
        """What the peer has recorded of this run: [(step, value), …]."""
        raise NotImplementedError
