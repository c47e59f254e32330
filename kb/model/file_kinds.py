"""Of what kind is a file, as its name's ending says? And which kinds are no text. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

FileKind = Literal[
    "picture", "audio", "video", "archive", "font", "model", "design", "book", "app", "document",
    "sheet", "slides",
]  # fmt: skip
"""What people call a file by its format."""

# Only what a person gave a name, and would look for by it: no compiled objects, databases, caches,
# libraries, and nothing that a program writes for itself. An ending that also means text is not
# here (`ts`, `obj`), but for `key`: a private key is then known by its name alone.
_NAMED: Final[Mapping[FileKind, Mapping[str, str]]] = {
    "audio": {
        "audio/mpeg": "mp3",
        "audio/mp4": "m4a m4b aac",
        "audio/flac": "flac",
        "audio/ogg": "ogg oga opus",
        "audio/wav": "wav",
        "audio/aiff": "aif aiff",
        "audio/x-ms-wma": "wma",
        "audio/x-other": "mid midi amr ape wv mka caf au",
    },
    "video": {
        "video/mp4": "mp4 m4v",
        "video/quicktime": "mov",
        "video/x-matroska": "mkv webm",
        "video/x-msvideo": "avi",
        "video/x-ms-wmv": "wmv",
        "video/x-other": "mpg mpeg flv 3gp ogv vob m2ts",
    },
    "archive": {
        "application/zip": "zip",
        "application/x-tar": "tar",
        "application/gzip": "gz tgz",
        "application/x-bzip2": "bz2 tbz2",
        "application/x-xz": "xz txz",
        "application/zstd": "zst",
        "application/x-7z-compressed": "7z",
        "application/x-rar-compressed": "rar",
    },
    "font": {"font/ttf": "ttf ttc", "font/otf": "otf", "font/woff": "woff", "font/woff2": "woff2"},
    "model": {"model/x-other": "stl ply fbx blend glb 3mf 3ds step stp dwg dxf skp f3d gcode"},
    "design": {
        "image/x-design": "psd psb ai eps xcf sketch fig indd afdesign afphoto afpub kra cdr",
    },
    "picture": {"image/x-raw": "cr2 cr3 nef arw dng orf rw2 raf pef srw"},
    "book": {"application/x-comic": "cbz cbr"},
    "app": {"application/x-app": "apk ipa dmg iso msi deb rpm appimage pkg"},
    "document": {"application/x-document": "pages one vsd pub mpp wpd"},
    "sheet": {"application/x-sheet": "numbers"},
    "slides": {"application/x-slides": "key"},
}  # fmt: skip
# Kinds of what kb reads.
_READ: Final[Mapping[FileKind, str]] = {
    "picture": "png jpg jpeg gif webp tif tiff bmp heic heif avif svg",
    "book": "epub fb2 djvu djv mobi azw azw3",
    "document": "pdf docx docm dotx doc odt fodt rtf vsdx vsdm vstx",
    "sheet": "xlsx xlsm xls ods fods csv tsv",
    "slides": "pptx pptm ppt odp fodp",
}

NAMED_MIMES: Final[Mapping[str, str]] = {
    ending: mime
    for formats in _NAMED.values()
    for mime, endings in formats.items()
    for ending in endings.split()
}
"""The type of each file that is found by its name alone, by the ending of the name."""
_MIMES: Final = frozenset(NAMED_MIMES.values())
_KIND_OF: Final[Mapping[str, FileKind]] = {
    **{
        ending: kind
        for kind, formats in _NAMED.items()
        for endings in formats.values()
        for ending in endings.split()
    },
    **{ending: kind for kind, endings in _READ.items() for ending in endings.split()},
}


def file_kind(ending: str) -> FileKind | None:
    """The kind of the files whose names end so; None for text and for what has no kind."""
    return _KIND_OF.get(ending)


def is_named(mime: str) -> bool:
    """Whether files of a format are found by their names: pictures, and what is no text."""
    return mime.startswith("image/") or mime in _MIMES
