"""With which key is a bucket's server asked? As AWS's own tools find it; settings have none."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kb.errors import BucketRefused

_ROLES: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
# What is wrong with a file is not repeated: it is full of keys.
_ADVICE: Final = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write both to ~/.aws/credentials"
)


class AccessKey:
    """A key that no repr shows."""

    __slots__ = ("ident", "secret", "token")

    def __init__(self, ident: str, secret: str, token: str | None) -> None:
        """`token` belongs to keys that end."""
        self.ident = ident
        self.secret = secret
        self.token = token

    def __repr__(self) -> str:
        return "AccessKey(...)"


def has_role(env: Mapping[str, str]) -> bool:
    """Whether the surroundings give keys that end and are renewed, and no other key is set."""
    return not env.get("AWS_ACCESS_KEY_ID") and any(env.get(name) for name in _ROLES)


def find_key(env: Mapping[str, str], place: str) -> AccessKey:
    """The key of the environment, or else of AWS's shared file. Raises BucketRefused."""
    ident, secret = env.get("AWS_ACCESS_KEY_ID", ""), env.get("AWS_SECRET_ACCESS_KEY", "")
    if ident or secret:
        if not (ident and secret):
            missing = "AWS_SECRET_ACCESS_KEY" if ident else "AWS_ACCESS_KEY_ID"
            raise BucketRefused(f"{missing} is not set", place=place)
        return AccessKey(ident, secret, env.get("AWS_SESSION_TOKEN") or None)
    import configparser

    file = env.get("AWS_SHARED_CREDENTIALS_FILE") or os.fspath(Path.home() / ".aws/credentials")
    profile = env.get("AWS_PROFILE") or "default"
    parser = configparser.RawConfigParser()
    try:
        parser.read(file, "utf-8")
        section = parser[profile]
        return AccessKey(
            section["aws_access_key_id"],
            section["aws_secret_access_key"],
            section.get("aws_session_token"),
        )
    except KeyError:
        detail = f"there is no key for it; {_ADVICE}"
    except (OSError, UnicodeDecodeError, configparser.Error):
        detail = f"{file} cannot be read; {_ADVICE}"
    raise BucketRefused(detail, place=place)
