"""Registered packs: their location and who may see them."""

from typing import Literal

from msgspec import Struct

from kb.model.doc import LOCAL_USER, Audience, Visibility, audience_of

PackForm = Literal["package", "filesystem"]
"""By its manifest: `manifest.yaml` of a package, or `manifest.json` of a folder of docs."""
GraphFormat = Literal["mermaid", "dot"]
"""The language of a drawing of a pack."""


class PackRecord(Struct, frozen=True, kw_only=True):
    """A registered pack. Its contents are read from its location each time."""

    pack_id: str
    location: str
    """The manifest's absolute path; for an unpacked archive its path in the home."""
    form: PackForm
    selector: str | None = None
    """The name that the pack gives itself besides its id."""
    version: str = ""
    """Version of the manifest when last registered or synced; a lower one needs a confirmation."""
    content_hash: str = ""
    """The manifest's content hash when it was registered."""
    signed_by: str = ""
    """The public key that signed its archive; empty if unsigned."""
    visibility: Visibility = "public"
    owner: str = LOCAL_USER
    added_ms: int

    @property
    def audience(self) -> Audience:
        """Who may see it and its docs."""
        return audience_of(self.visibility, self.owner)
