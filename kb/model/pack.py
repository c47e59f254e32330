"""Packs that are registered: where they lie and who may see them."""

from typing import Literal

from msgspec import Struct

from kb.model.doc import LOCAL_USER, Audience, Visibility, audience_of

PackForm = Literal["package", "filesystem"]
"""By its manifest: `manifest.yaml` of a package, or `manifest.json` of a folder of docs."""
GraphFormat = Literal["mermaid", "dot"]
"""The language of a drawing of a pack."""


class PackRecord(Struct, frozen=True, kw_only=True):
    """A pack that is known by its id; what it says is read from its place each time."""

    pack_id: str
    location: str
    """The manifest's absolute path; of one that was unpacked, its path in the home."""
    form: PackForm
    selector: str | None = None
    """The name that the pack gives itself, besides its id."""
    version: str = ""
    """Of the manifest as it was registered or synced last; a lower one has to be asked for."""
    content_hash: str = ""
    """As the manifest said when it was registered."""
    signed_by: str = ""
    """The public key that signed its archive; empty where nobody did."""
    visibility: Visibility = "public"
    owner: str = LOCAL_USER
    added_ms: int

    @property
    def audience(self) -> Audience:
        """Who may see it and its docs."""
        return audience_of(self.visibility, self.owner)
