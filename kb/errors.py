# Long because it is one tree: every class with its message.
"""What can go wrong? One tree; every class carries its message template and its exit code.

KbError                     1
├── UsageError              2   the call itself is wrong
│   ├── ConfigError         2   a setting is unknown, ill-typed or out of range
│   └── AmbiguousId         2   a short id names several things
│       └── ShortId         2   a short id names one thing, and soon several
├── ItemsFailed             3   finished, but some items failed
├── NotFound                4   no such doc, chunk or path
│   ├── NotYours            4   it belongs to somebody else
│   ├── NothingToLearn      4   no such topic, or nothing of it matches
│   ├── NoNote              4   the notebook has no such file
│   ├── NoJob               4   no job has this id
│   ├── NoSignal            4   no signal has this id
│   └── NoBackup            4   no backup has this name
├── StoreDamaged            5   a record or page is not what was written
│   ├── StoreMissing        5   a home's store is not there, and what it named is
│   │   └── HomeGone        5   a home is not in its database, and its caches are here
│   ├── HomeUnfinished      5   a home is still being copied there
│   ├── StoreTooNew         5   a later kb made the store
│   └── BackupDamaged       5   a backup is cut short, or not what was written
├── HeldBack                6   waits for a confirmation
├── SourceError             1   one source could not be taken in
│   ├── Unreadable          1   the bytes could not be had
│   ├── TooLarge            1   over file_bytes_max
│   ├── Unsupported         1   no canonicaliser for this format
│   ├── EmptySource         1   nothing in it to find
│   │   └── Scanned         1   pages that are pictures
│   ├── NotWritten          1   a program made it
│   ├── Encrypted           1   needs a password
│   ├── Unparsable          1   damaged, or not what it claims to be
│   ├── ChangedWhileRead    1   the file moved under us
│   ├── Refused             1   a rule forbids fetching it
│   ├── AuthFailed          1   the server wants a login (401, 403)
│   ├── RateLimited         1   the server wants us to wait (429)
│   ├── Permanent           1   the server will not give it (other 4xx)
│   │   └── Gone            1   the server says there is no such page (404, 410)
│   └── Transient           1   the network or the server failed; try again (5xx)
├── PluginFailed            1   a plugin cannot be loaded, or is not what it should be
├── EmbedError              1   the model returned what is not a vector
├── RerankError             1   the reranker failed, or returned what is no score
├── ModelMissing            1   the model's files are not where they should be
├── LlmError                1   the language model gave no answer to work with
│   ├── NoModel             1   no language model is set up
│   ├── ModelUnavailable    1   its server cannot be reached, is busy or failed; try again
│   ├── ModelRejected       1   its server will not take the request (4xx)
│   ├── ModelRefused        1   the model declined to answer
│   └── BadAnswer           1   what came cannot be read, is empty or cut short
├── NotebookUnfit           1   the folder cannot be the notebook, or not as it is now
│   └── NotebookGone        5   there was a notebook, and its repository is no more
├── CannotUndo              1   later commits stand on what a note's commit did
├── NotPushed               1   the notebook's remote does not have its newest commit
├── StoreFull               1   the disk or the map has no room
├── StoreBusy               1   another process held a lock for too long
│   ├── StoreUnreachable    1   the database of a home cannot be reached; try again
│   └── StoreBehind         1   a transaction that was asked for is not here yet; try again
├── StoreDenied             1   the database of a home does not let this user in
│   └── BucketRefused       1   the bucket of a home will not take the request
├── OwnerOnly               1   only the role that owns a home in a database may do it
├── ReadOnlyHome            1   the home cannot be written
├── HomeClosed              1   a program uses a home that it has closed
├── WrongProcess            1   an environment was carried across a fork
└── StaleToken              1   a job's lease was lost to someone else
"""

from typing import ClassVar, Final

DISTRIBUTION: Final = "kb-search"
"""The name on the package index. The command and the import are `kb`."""


OCR_INSTALL: Final = "apt install tesseract-ocr"
"""What a user types to have pictures of text read."""


def install_command(extra: str) -> str:
    """What a user types to install an extra of kb's."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


class KbError(Exception):
    """The root. `fields` fill `template`; `str(error)` is one clear line for a person."""

    template: ClassVar[str] = "{detail}"
    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str = "", **fields: object) -> None:
        """Keep the fields; raise KeyError at once when the template asks for one not given."""
        self.fields: dict[str, object] = {"detail": detail, **fields}
        super().__init__(self.template.format_map(self.fields))


class UsageError(KbError):
    """The call itself is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is unknown, ill-typed or out of range."""

    template = "{place}: {detail}"


class AmbiguousId(UsageError):
    """A short id names several things."""

    template = "{id} is the start of several ids ({candidates}); give more characters"


class ShortId(AmbiguousId):
    """A short id names one thing, and soon several."""

    template = "{id} is too short for an id; give at least four characters, as of {candidates}"


class ItemsFailed(KbError):
    """Finished, but some items failed; each was named as it happened."""

    exit_code = 3


class NotFound(KbError):
    """Nothing has this id, tag or path."""

    template = "nothing here has the id {id}; `kb ls` lists the docs"
    exit_code = 4


class NotYours(NotFound):
    """The caller sees it, and only somebody else may change it."""

    template = "{id} belongs to somebody else; only they and the home's owner may change it"


class NothingToLearn(NotFound):
    """There is no such topic, or none of its subjects is meant."""

    template = "{detail}"


class NoBackup(NotFound):
    """No backup has this name, and none is at this path."""

    template = "no backup is called {id}; `kb backup list` lists them"


class NoSignal(NotFound):
    """No signal has this id."""

    template = "no signal has the id {id}; `kb signals --all` lists them"


class NoNote(NotFound):
    """The notebook has no such file."""

    template = "the notebook has no note {id}; INDEX.md lists its notes"


class NoJob(NotFound):
    """No job has this id, or it is done and was not one that is remembered."""

    template = "no job has the id {id}; `kb job ls` lists them"


class StoreDamaged(KbError):
    """A record or page is not what was written."""

    template = "{place}: {detail}; run `kb check`, or restore the home from a backup"
    exit_code = 5


class StoreMissing(StoreDamaged):
    """A home's store is not there, and what it named is; nothing is made in its place."""

    template = (
        "{place}: the store is missing, but {detail} beside it, so this home had one; "
        "bring the file back, restore a backup (`kb backup list` shows them), or run "
        "`kb check --rebuild` to add the files in raw/ again"
    )


class HomeGone(StoreMissing):
    """A home in a database is not there any more, and this machine's caches of it are."""

    template = (
        "{place}: the home is missing in the database, but its caches lie in {folder}, so it had "
        "one; restore it there, or remove that folder to begin anew"
    )


class HomeUnfinished(StoreDamaged):
    """A copy of a home into a database was begun, and has not ended; nothing reads it so far."""

    template = (
        "{place}: a home is being copied there, or the copy was cut short; run the `kb migrate` "
        "or `kb backup restore` that began it once more, and it goes on"
    )


class StoreTooNew(StoreDamaged):
    """A later kb made the store; nothing is wrong with it."""

    template = "{place}: a later kb made it ({detail}); update kb to use this home"


class BackupDamaged(StoreDamaged):
    """A backup is cut short, or not what was written; nothing was restored from it."""

    template = "{place}: {detail}; `kb backup list` shows the other backups"


class HeldBack(KbError):
    """Waits for a confirmation."""

    exit_code = 6


class SourceError(KbError):
    """One source could not be taken in; the others are not touched by it.

    `reason` is the part of the message that does not repeat the source's name.
    """

    template = "{source}: {detail}"

    @property
    def reason(self) -> str:
        """The detail alone, for lists that already name the source."""
        return str(self.fields["detail"])


class Unreadable(SourceError):
    """The bytes could not be had."""


class TooLarge(SourceError):
    """The source is over `ingest.file_bytes_max`."""


class Unsupported(SourceError):
    """No canonicaliser reads this format."""


class EmptySource(SourceError):
    """There is nothing in it to find."""


class Scanned(EmptySource):
    """Its pages are pictures: text recognition (OCR) may find words in them."""

    @property
    def pages(self) -> int:
        """How many pages it has; 0 if nobody counted them."""
        pages = self.fields.get("pages")
        return pages if isinstance(pages, int) else 0


class NotWritten(SourceError):
    """No person wrote it: a program made it, or put it on few lines for machines."""


class Encrypted(SourceError):
    """It needs a password."""


class Unparsable(SourceError):
    """It is damaged, or not what it claims to be."""


class ChangedWhileRead(SourceError):
    """The file moved under us; try again when it is quiet."""


class Refused(SourceError):
    """A rule forbids fetching it: its scheme, its address, its size, its robots.txt."""


class AuthFailed(SourceError):
    """The server wants a login (401, 403)."""


class RateLimited(SourceError):
    """The server wants us to wait (429). `retry_after_s` is how long, None where it is not said."""

    def __init__(
        self, detail: str = "", *, retry_after_s: int | None = None, **fields: object
    ) -> None:
        """Keep how long to wait beside the fields."""
        super().__init__(detail, **fields)
        self.retry_after_s = retry_after_s


class Permanent(SourceError):
    """The server will not give it (other 4xx); trying again changes nothing."""


class Gone(Permanent):
    """The server says there is no such page (404, 410)."""


class Transient(SourceError):
    """The network or the server failed (5xx); a later try may succeed."""


class PluginFailed(KbError):
    """A plugin cannot be loaded, or is not what its group wants; the others work."""

    template = "the plugin {plugin} of {place} {detail}; update {place}, or uninstall it"


class EmbedError(KbError):
    """The model returned what is not a vector, or not of its size."""


class RerankError(KbError):
    """The reranker failed, or returned what is no score; a search goes on without it."""


class ModelMissing(KbError):
    """The model's files are not where they should be, or not what they should be."""


class LlmError(KbError):
    """The language model gave no answer to work with."""

    template = "{place}: {detail}"


class NoModel(LlmError):
    """No language model is set up."""

    template = (
        "no language model is set up; set llm.provider to ollama, anthropic or openai, "
        "and llm.model to a model that it has"
    )


class ModelUnavailable(LlmError):
    """The model's server cannot be reached, is busy or failed; a later try may succeed.

    `retry_after_s` is how long the server wants us to wait, None where it does not say.
    """

    def __init__(
        self, detail: str = "", *, retry_after_s: int | None = None, **fields: object
    ) -> None:
        """Keep how long to wait beside the fields."""
        super().__init__(detail, **fields)
        self.retry_after_s = retry_after_s


class ModelRejected(LlmError):
    """The model's server will not take the request (4xx); trying again changes nothing."""


class ModelRefused(LlmError):
    """The model declined to answer."""


class BadAnswer(LlmError):
    """What came cannot be read as an answer, is empty, or is cut short."""


class NotebookUnfit(KbError):
    """The folder cannot be the notebook, or not as it is now; nothing in it was changed."""

    template = "{place} cannot be the notebook: {detail}"


class NotebookGone(NotebookUnfit):
    """There was a notebook, and its repository is no more."""

    template = "{place}: {detail}"
    exit_code = 5


class CannotUndo(KbError):
    """Later commits stand on what a note's commit did; nothing was changed."""

    template = "{id} cannot be undone: {detail}"


class NotPushed(KbError):
    """The notebook's remote does not have its newest commit; nothing of the notebook is lost."""

    template = "{place}: not pushed: {detail}"


class StoreFull(KbError):
    """The disk or the map has no room; nothing of the transaction was kept."""

    template = "no room left at {place}: {detail}; free some space and run it again"


class StoreBusy(KbError):
    """Another process held a lock for longer than we wait."""

    template = "{place} is in use by another process; try again in a moment"


class StoreUnreachable(StoreBusy):
    """The database of a home cannot be reached, is too busy, or went away meanwhile."""

    template = "{place}: {detail}; try again in a moment"


class StoreBehind(StoreBusy):
    """The store, or a cache of it, has not come to the transaction that was asked for."""

    template = (
        "{place} has not come to the transaction that was asked for; try again in a moment, or "
        "without it"
    )


class StoreDenied(KbError):
    """The database of a home does not let this user in; trying again changes nothing."""

    template = "{place}: {detail}"


class BucketRefused(StoreDenied):
    """The bucket of a home will not take the request: its name, the key, the region, the clock."""


class OwnerOnly(KbError):
    """Only the role that owns a home in a database may do it, or who is a member of that role."""

    template = (
        "{what} is for the owner of the home, and the role {role} is not it; "
        "the owner makes it a member: GRANT the owner's role TO it"
    )


class ReadOnlyHome(KbError):
    """The home cannot be written."""

    template = "{place} cannot be written: {detail}"


class HomeClosed(KbError):
    """A program uses a home that it has closed."""

    template = "{place} is closed here; open it again with kb.open"


class WrongProcess(KbError):
    """An environment was carried across a fork; open a new one in the child."""

    template = "{place} was opened by process {opened_by} and cannot be used after a fork"


class StaleToken(KbError):
    """A job's lease was lost to someone else; its result must not be written."""

    template = "job {id} is no longer held under token {token}; its result was dropped"
