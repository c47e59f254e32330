"""What does a formula of Office say? TeX, as formulas of web pages are written."""

from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.archive import attribute, local

if TYPE_CHECKING:
    from lxml.etree import _Element

# What of an element is how it looks.
_LOOKS: Final = "Pr"
_INTEGRAL: Final = "\u222b"


def formula(math: "_Element") -> str:
    """The formula between dollar signs; empty for one without signs."""
    text = " ".join(_tex(math).split())
    return f"${text}$" if text else ""


def _tex(element: "_Element") -> str:
    kind = local(element)
    if kind == "t":
        return element.text or ""
    said = [(local(part), _tex(part)) for part in element if not local(part).endswith(_LOOKS)]
    parts = dict(said)
    base, low, high = (parts.get(name, "") for name in ("e", "sub", "sup"))
    match kind:
        case "f":
            return f"\\frac{{{parts.get('num', '')}}}{{{parts.get('den', '')}}}"
        case "sSup" | "sSub" | "sSubSup":
            return base + _scripts(low, high)
        case "rad":
            degree = f"[{parts['deg']}]" if parts.get("deg") else ""
            return f"\\sqrt{degree}{{{base}}}"
        case "nary":
            return _looks(element, "chr", _INTEGRAL) + _scripts(low, high) + " " + base
        case "d":
            opens, closes = _looks(element, "begChr", "("), _looks(element, "endChr", ")")
            return opens + ", ".join(text for _, text in said) + closes
        case "mr":
            return " & ".join(text for _, text in said)
        case "m":
            return " \\\\ ".join(text for _, text in said)
        case _:
            return "".join(text for _, text in said)


def _scripts(low: str, high: str) -> str:
    return (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")


def _looks(element: "_Element", name: str, default: str) -> str:
    """A sign that the formula names beside its parts."""
    found = element.find(f"{{*}}{local(element)}Pr/{{*}}{name}")
    return default if found is None else attribute(found, "val")
