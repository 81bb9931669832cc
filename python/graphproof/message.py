"""Errors in five parts: what is wrong, what was got, what was wanted, why it matters, what next."""


class Error(RuntimeError):
    """An error whose message has five parts, as every message of graphproof."""

    def __init__(self, what: str, got: str, want: str, why: str, next: str):
        super().__init__(f"{what}; got {got}; want {want}; {why}; next: {next}")
        self.what, self.got, self.want, self.why, self.next = what, got, want, why, next


class UsageError(Error):
    """The command line, the batch file or the environment is wrong. Nothing ran. Exit code 2."""
