"""Where the file of a repository can be looked at: the page that its host has of it. Pure."""

import re
from typing import Final

# What the hosts of a kind put between a repository and a ref, and how they name a line.
_FORMS: Final = (
    (r"github\.com", "{repository}/blob/{ref}/{path}", "#L{line}"),
    (r"gitlab\..+", "{repository}/-/blob/{ref}/{path}", "#L{line}"),
    (r"codeberg\.org|gitea\..+", "{repository}/src/{ref}/{path}", "#L{line}"),
    (r"bitbucket\.org", "{repository}/src/{ref}/{path}", "#lines-{line}"),
    (r"git\.sr\.ht", "{repository}/tree/{ref}/item/{path}", "#L{line}"),
)
_FILE: Final = (
    r"git\+(?:https://|ssh://(?:[^@/]*@)?)(?P<host>[^/:@]+)(?P<path>/[^#]+?)"
    r"(?:\.git)?(?:(?<!/)@(?P<ref>[^@#]+))?#(?P<file>.+)"
)


def repository_view(source: str, line: int | None = None) -> str | None:
    """The page of a repository's file, at a line; None for other sources and unknown hosts.

    Without a ref it is that of the repository's own branch, which hosts call HEAD.
    """
    parts = re.fullmatch(_FILE, source) if source.startswith("git+") else None
    if parts is None:
        return None
    for host, form, at_line in _FORMS:
        if re.fullmatch(host, parts["host"]):
            repository = f"https://{parts['host']}{parts['path']}"
            page = form.format(
                repository=repository, ref=parts["ref"] or "HEAD", path=parts["file"]
            )
            return page + (at_line.format(line=line) if line else "")
    return None
