"""What is pinned on a page? The fields of its forms and the notes, which are not in its text."""

import ctypes
from collections.abc import Callable
from typing import Any, Final

from kb.intake.canonicalize.title import one_line

PINNED_MAX: Final = 5_000
ATTACHED_MAX: Final = 1_000
_VALUE_BYTES_MAX: Final = 1 << 20
_HIDDEN: Final = 2
_UNCHECKED: Final = "Off"
_PASSWORD: Final = 1 << 13


def pinned_lines(raw: Any, page: Any, form: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields with a value and notes, a line each; then the names of fields without a value.

    `form` is pdfium's form environment, None for a file without a form.
    """
    filled: list[str] = []
    empty: list[str] = []
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), PINNED_MAX)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            _look_at(raw, annotation, form, filled, empty)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    # The buttons of one choice have one name and one value.
    return tuple(dict.fromkeys(filled)), tuple(dict.fromkeys(empty))


def attached_names(raw: Any, pdf: Any) -> tuple[str, ...]:
    """The names of the files in the file."""
    names = []
    for number in range(min(raw.FPDFDoc_GetAttachmentCount(pdf), ATTACHED_MAX)):
        attachment = raw.FPDFDoc_GetAttachment(pdf, number)
        if attachment:
            names.append(one_line(_string(raw.FPDFAttachment_GetName, attachment)))
    return tuple(name for name in names if name)


def _look_at(raw: Any, annotation: Any, form: Any, filled: list[str], empty: list[str]) -> None:
    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP):
        return
    if raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
        return
    if subtype != raw.FPDF_ANNOT_WIDGET:
        note = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents\0")
        filled += [line for line in note.splitlines() if line.strip()]
        return
    if form is None or raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return
    _look_at_field(raw, annotation, form, filled, empty)


def _look_at_field(
    raw: Any, annotation: Any, form: Any, filled: list[str], empty: list[str]
) -> None:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE):
        return
    name = one_line(_string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation))
    # Names that programs use are a path of parts with numbers.
    name = (
        name
        or one_line(_string(raw.FPDFAnnot_GetFormFieldName, form, annotation))
        .rpartition(".")[2]
        .partition("[")[0]
    )
    value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation).strip()
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        value = "" if value == _UNCHECKED else value
    if not value:
        empty += [name] if name else []
        return
    first, *rest = value.splitlines()
    filled += [f"{name}: {first}" if name else first, *rest]


def _string(read: Callable[..., int], *which: Any) -> str:
    """What one of pdfium's functions writes as UTF-16, called for the size and then for it."""
    size = read(*which, None, 0)
    if not 2 < size <= _VALUE_BYTES_MAX:
        return ""
    units = (ctypes.c_ushort * (size // 2 + 1))()
    read(*which, units, size)
    return bytes(units)[: size - 2].decode("utf-16-le", "replace").rstrip("\0")
