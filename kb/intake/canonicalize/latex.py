"""What does a LaTeX file say? Its sections and text, as markdown; formulas as they are written."""

import re
import unicodedata
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.blocks import fenced, finish, heading, table
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

MIME: Final = "text/x-tex"
_ARGUMENT: Final = r"(?:\[[^\[\]]{0,300}\])?\{((?:[^{}]|\{[^{}]{0,300}\}){0,2000})\}"
_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_VERBATIM: Final = re.compile(
    r"\\begin\{(verbatim|lstlisting|minted|Verbatim|alltt)\*?\}(?:\[[^\]\n]{0,300}\])?"
    r"(?:\{([\w+#-]{1,40})\})?(.*?)\\end\{\1\*?\}",
    re.DOTALL,
)
_COMMENT_BLOCK: Final = re.compile(r"\\begin\{comment\}.*?\\end\{comment\}", re.DOTALL)
_DISPLAY: Final = re.compile(
    r"\\begin\{(equation|align|gather|multline|eqnarray|displaymath|math|split|flalign)\*?\}"
    r"(.*?)\\end\{\1\*?\}|\\\[(.*?)\\\]|\$\$(.*?)\$\$",
    re.DOTALL,
)
_MATH: Final = re.compile(r"(?<!\\)\$((?:[^$\\]|\\.){1,2000}?)\$|\\\((.{1,2000}?)\\\)", re.DOTALL)
_TABULAR: Final = re.compile(
    r"\\begin\{(tabular[xy*]?|longtable|array)\}(.*?)\\end\{\1\}", re.DOTALL
)
_COLUMNS: Final = re.compile(r"^(?:\s*(?:\[[^\]]{0,60}\]|\{(?:[^{}]|\{[^{}]{0,100}\}){0,300}\}))+")
_SECTIONS: Final = {
    "part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5,
    "subparagraph": 6, "frametitle": 2,
}  # fmt: skip
_SECTION: Final = re.compile(
    r"\\(part|chapter|section|subsection|subsubsection|paragraph|subparagraph|frametitle)\*?"
    r"(?:\[[^\[\]]{0,300}\])?\{((?:[^{}]|\{[^{}]{0,200}\}){0,600})\}"
)
_ENVIRONMENT: Final = re.compile(r"\\(begin|end)\{([\w*]{1,40})\}(?:\[[^\[\]\n]{0,300}\])?")
_ITEM: Final = re.compile(r"\\item\b[ \t]*(?:\[([^\[\]\n]{0,300})\])?[ \t]*")
_LINK: Final = re.compile(r"\\href\{([^{}]{1,500})\}\{([^{}]{0,500})\}")
_DROPPED: Final = re.compile(
    r"\\(?:label|ref|eqref|pageref|cref|Cref|autoref|vspace|hspace|includegraphics|input|include"
    r"|bibliography|bibliographystyle|pagestyle|thispagestyle|setlength|addcontentsline|index"
    r"|usepackage|newcommand|renewcommand|setcounter|nocite|hypersetup|graphicspath)\*?"
    r"(?:\[[^\[\]]{0,300}\]){0,3}(?:\{(?:[^{}]|\{[^{}]{0,300}\}){0,600}\}){0,3}"
)
_SPANNING: Final = re.compile(
    r"\\multi(?:column|row)(?:\[[^\[\]]{0,40}\])?\{[^{}]{0,60}\}\{[^{}]{0,60}\}"
)
_RULES: Final = re.compile(
    r"\\(?:cmidrule|cline|rule|specialrule)(?:\([^()\n]{0,20}\))?(?:\{[^{}\n]{0,40}\}){0,3}"
)
_MACRO: Final = re.compile(
    r"\\(?:newcommand|renewcommand|providecommand|def)\*?\{?\\([A-Za-z]{1,40})\}?"
    r"\{([^{}#\n]{1,200})\}"
)
_MACROS_MAX: Final = 500
_FOOTNOTE: Final = re.compile(
    r"\\(?:footnote|thanks|marginpar)\{((?:[^{}]|\{[^{}]{0,200}\}){0,2000})\}"
)
_CITE: Final = re.compile(r"\\[cC]ite\w{0,12}\*?(?:\[[^\[\]]{0,100}\]){0,2}\{([^{}]{1,400})\}")
_ACCENT: Final = re.compile(
    r"\\(?:([`'^\"~=.])(?:\{\\?([A-Za-z])\}|\\?([A-Za-z]))"
    r"|([uvHckrbd])(?:\{\\?([A-Za-z])\}|[ ]+\\?([A-Za-z])))"
)
_ACCENTS: Final = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328",
    "r": "\u030a", "b": "\u0331", "d": "\u0323",
}  # fmt: skip
_LETTERS: Final = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł",
    "aa": "å", "AA": "Å", "i": "i", "j": "j", "LaTeX": "LaTeX", "TeX": "TeX", "ldots": "…",
    "dots": "…", "textbackslash": "\\", "copyright": "©", "pounds": "£", "S": "§", "P": "¶",
    "textendash": "–", "textemdash": "—", "quad": " ", "qquad": " ", "newline": "\n", "par": "\n\n",
    "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "dj": "đ", "DJ": "Đ", "ng": "ŋ", "NG": "Ŋ",
    "SS": "ẞ", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "textquotesingle": "'", "textless": "<", "textgreater": ">",
    "textasciitilde": "∼", "textasciicircum": "^", "textunderscore": "_", "textbar": "|",
    "textdegree": "°", "texttimes": "×", "textregistered": "®", "texttrademark": "™",
    "textbullet": "•", "textperiodcentered": "·", "textellipsis": "…", "textmu": "µ",
    "textdollar": "$", "guillemotleft": "«", "guillemotright": "»", "backslash": "\\",
}  # fmt: skip
_LETTER: Final = re.compile(rf"\\({'|'.join(_LETTERS)})(?![A-Za-z])(?:\{{\}}|[ \t]*)")
_COMMAND: Final = re.compile(r"\\[a-zA-Z@]{1,60}\*?(?:\[[^\[\]]{0,300}\])*\{([^{}]*)\}")
_BARE: Final = re.compile(r"\\[a-zA-Z@]{1,60}\*?[ \t]?")
# What must stand in a text that has more than words.
_LATEX: Final = re.compile(r"[\\{}$~]|``|\'\'|--")
_GREEK: Final = re.compile(r"\\([A-Za-z][a-z]{1,6})(?![A-Za-z])[ ]?")
_SIMPLE: Final = re.compile(r"[\w +,.-]{1,40}")
_NESTING_MAX: Final = 24
_KEPT: Final = re.compile("\ue000(\\d{1,9})\ue001")


class _Preamble(Struct, frozen=True, kw_only=True):
    title: str
    author: str
    date: str


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The text between the beginning and the end of the document, or all of a part of one.

    Commands give way to what they hold; labels, references to them and settings are left out.

    Raises:
        EmptySource: there is no text in it.
    """
    text, warning = decode_text(data, (charset,) if charset else ())
    converter = _Converter()
    text = clean_text(text).replace("\ue000", "").replace("\ue001", "")
    text = converter.verbatim(_COMMENT_BLOCK.sub("", text))
    text = "\n".join(_without_comment(line) for line in text.split("\n"))
    text = _expanded(text)
    preamble, begin, rest = text.partition(r"\begin{document}")
    body = rest.partition(r"\end{document}")[0] if begin else preamble
    facts = _Preamble(
        title=converter.command("title", text),
        author=converter.command("author", text),
        date=converter.command("date", text),
    )
    blocks = [heading(1, facts.title), facts.author, converter.body(body)]
    return finish(
        blocks,
        name,
        MIME,
        title=one_line(facts.title.replace("`", "")),
        date=iso_date(facts.date),
        warnings=(warning,) if warning else (),
        is_titled=False,
    )


def words_of(text: str) -> str:
    """LaTeX that stands in a field, such as a title, as words; formulas as they are written.

    A formula that is no more than letters, numbers and Greek is these.
    """
    if _LATEX.search(text) is None:
        return text
    return _Converter().field(text.replace("\ue000", "").replace("\ue001", ""))


def _expanded(text: str) -> str:
    """The text with its own commands that take no argument replaced by what they stand for."""
    macros = dict(_MACRO.findall(text)[:_MACROS_MAX])
    if not macros:
        return text
    text = _MACRO.sub("", text)
    used = re.compile(rf"\\({'|'.join(macros)})(?![A-Za-z])(?:\{{\}})?")
    return used.sub(lambda match: macros[match[1]], text)


def _without_comment(line: str) -> str:
    match = _COMMENT.search(line)
    return line[: match.end(1)] if match else line


class _Converter:
    """Turns LaTeX into markdown; what must stay as it is written is set aside meanwhile."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def verbatim(self, text: str) -> str:
        """The text with its listings set aside as code."""
        return _VERBATIM.sub(lambda m: self._keep(f"\n\n{fenced(m[3], m[2] or '')}\n\n"), text)

    def command(self, name: str, text: str) -> str:
        """What the first command of this name holds, as words."""
        match = re.search(rf"\\{name}{_ARGUMENT}", text)
        return " ".join(self._restored(self._plain(match[1])).split()) if match else ""

    def field(self, text: str) -> str:
        """The text of a field as words."""
        text = _MATH.sub(lambda m: self._keep(_formula_words((m[1] or m[2]).strip())), text)
        return self._restored(self._plain(text))

    def body(self, text: str) -> str:
        """The text of a document as markdown."""
        text = _DISPLAY.sub(self._formula, text)
        text = _MATH.sub(lambda m: self._keep(f"${(m[1] or m[2]).strip()}$"), text)
        text = re.sub(r"\\(?:title|author|date)(?=\[|\{)", r"\\usepackage", text)
        text = _TABULAR.sub(self._table, text)
        text = _SECTION.sub(self._section, text)
        text = _ENVIRONMENT.sub(self._environment, text)
        text = _ITEM.sub(lambda m: f"\n- {m[1]}: " if m[1] else "\n- ", text)
        text = self._restored(self._plain(text))
        text = re.sub(r"[ \t]+\n", "\n", re.sub(r"\n[ \t]+(?=\S)", "\n", text))
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def _keep(self, text: str) -> str:
        self._kept.append(text)
        return f"\ue000{len(self._kept) - 1}\ue001"

    def _restored(self, text: str) -> str:
        for _ in range(_NESTING_MAX):
            if "\ue000" not in text:
                break
            text = _KEPT.sub(lambda m: self._kept[int(m[1])], text)
        return text

    def _formula(self, match: re.Match[str]) -> str:
        formula = next(filter(None, match.groups()[1:]), "")
        formula = re.sub(r"\\label\{[^{}]{0,200}\}", "", formula).strip()
        return self._keep(f"\n\n$$\n{formula}\n$$\n\n") if formula else ""

    def _section(self, match: re.Match[str]) -> str:
        words = " ".join(self._plain(match[2]).split())
        return f"\n\n{self._keep(heading(_SECTIONS[match[1]], words))}\n\n"

    def _environment(self, match: re.Match[str]) -> str:
        is_abstract = match[1] == "begin" and match[2] == "abstract"
        return f"\n\n{self._keep('## Abstract')}\n\n" if is_abstract else "\n\n"

    def _table(self, match: re.Match[str]) -> str:
        rows = [
            [" ".join(self._plain(cell).split()) for cell in re.split(r"(?<!\\)&", row)]
            for row in re.split(r"\\\\(?:\[[^\]\n]{0,40}\])?", _COLUMNS.sub("", match[2]))
        ]
        clean = [[self._restored(cell) for cell in row] for row in rows]
        return self._keep(f"\n\n{table(clean)}\n\n")

    def _plain(self, text: str) -> str:
        """Words without commands."""
        text = _LINK.sub(r"[\2](\1)", text)
        text = _CITE.sub(r"[\1]", text)
        text = _RULES.sub("", _SPANNING.sub("", _DROPPED.sub("", text)))
        text = _FOOTNOTE.sub(r" (\1)", text)
        text = _ACCENT.sub(_accented, text)
        text = _LETTER.sub(lambda m: _LETTERS[m[1]], text)
        text = re.sub(r"\\([&%$#_{}])", lambda m: self._keep(m[1]), text)
        text = re.sub(r"\\\\(?:\[[^\]\n]{0,40}\])?", "\n", text)
        for _ in range(_NESTING_MAX):
            text, count = _COMMAND.subn(r"\1", text)
            if not count:
                break
        # Where a word may be broken, and what only moves letters.
        text = re.sub(r"\\[-/!@]", "", _BARE.sub("", text))
        text = re.sub(r"\\[ ,;:]", " ", text)
        text = text.replace("{", "").replace("}", "").replace("~", " ")
        return text.replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–")


def _accented(match: re.Match[str]) -> str:
    sign, letter = match[1] or match[4], match[2] or match[3] or match[5] or match[6]
    return unicodedata.normalize("NFC", letter + _ACCENTS[sign])


def _formula_words(formula: str) -> str:
    r"""A formula such as `_2` or `\alpha` as people read it; any other one as it is written."""
    words = _GREEK.sub(_greek, re.sub(r"\\(?:mathrm|mathit|mathbf|text|rm)\b|[_^{}]", "", formula))
    return words.strip() if _SIMPLE.fullmatch(words) else f"${formula}$"


def _greek(match: re.Match[str]) -> str:
    case = "SMALL" if match[1].islower() else "CAPITAL"
    name = "LAMDA" if match[1].lower() == "lambda" else match[1].upper()
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {name}")
    except KeyError:
        return match[0]
