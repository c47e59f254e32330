"""How often is legacy text decoded to the very letter? `make bench-charsets DATA="folders"`.

Real texts whose letters are known are encoded as their languages' people have encoded them, and
decoded again without a word of how. Texts are `corpus.jsonl` files of folders named after a
language, catalogues of translations (`LANGUAGE/LC_MESSAGES/*.mo`), and sample files whose encoding
a person has looked up. `--half 0` tunes, `--half 1` reports: by the hash of a text it is in one.
"""

import argparse
import gettext
import json
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from kb.intake.canonicalize.decode import decode_text
from kb.intake.canonicalize.mime import is_text

SIZES = (150, 600, 3000)
WESTERN = ("cp1252", "iso8859-15", "mac_roman", "cp850")
CENTRAL = ("iso8859-2", "cp1250", "cp852", "mac_latin2")
BALTIC = ("cp1257", "iso8859-13", "iso8859-4")
CODECS = {
    **dict.fromkeys(("de", "fr", "es", "it", "nl", "pt", "pt_BR"), WESTERN),
    **dict.fromkeys(("da", "sv", "nb", "fi", "ca", "gl"), WESTERN),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "ro"), CENTRAL),
    **dict.fromkeys(("lt", "lv", "et"), BALTIC),
    "tr": ("iso8859-9", "cp1254"),
    "ru": ("koi8_r", "cp1251", "iso8859-5", "cp866", "mac_cyrillic", "cp855"),
    "uk": ("koi8_u", "cp1251", "cp1125"),
    "bg": ("cp1251", "iso8859-5"),
    "sr": ("cp1251", "iso8859-5"),
    "be": ("cp1251", "iso8859-5"),
    "el": ("cp1253", "iso8859-7"),
    "he": ("cp1255", "iso8859-8"),
    "ar": ("cp1256", "iso8859-6"),
    "th": ("tis-620", "cp874"),
    "vi": ("cp1258",),
    "zh_CN": ("gb2312", "gb18030", "hz"),
    "zh_TW": ("big5",),
    "ja": ("cp932", "euc_jp", "iso2022_jp"),
    "ko": ("cp949", "euc_kr", "iso2022_kr", "johab"),
}
WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
CORPORA = {"cmrc2018_trial": "zh_CN", "xquad_th": "th", "xquad_tr": "tr", "xquad_vi": "vi"}
SAMPLES = {
    "sample-arabic-1.txt": "cp1256",
    "sample-french-1.txt": "cp1252",
    "sample-chinese.txt": "big5",
    "sample-greek.txt": "cp1253",
    "sample-greek-2.txt": "cp1253",
    "sample-hebrew-2.txt": "cp1255",
    "sample-hebrew-3.txt": "cp1255",
    "sample-korean.txt": "cp949",
    "sample-turkish.txt": "cp1254",
    "sample-russian.txt": "mac_cyrillic",
}

Decode = Callable[[bytes], str | None]


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Texts with their languages, as they are kept below the folder."""
    for path in sorted(folder.rglob("corpus.jsonl")):
        for line in path.read_text().splitlines():
            doc = json.loads(line)
            language = CORPORA.get(path.parent.name) or doc["_id"].partition("-")[0]
            if language in CODECS:
                yield language, doc["text"]
    for path in sorted(folder.rglob("LC_MESSAGES/*.mo")):
        if (language := path.parts[-3]) in CODECS:
            with path.open("rb") as file:
                try:
                    catalogue = gettext.GNUTranslations(file)
                except (OSError, UnicodeDecodeError):
                    continue
            yield language, "\n".join(_messages(catalogue))


def _messages(catalogue: gettext.GNUTranslations) -> Iterator[str]:
    known: dict[object, str] = catalogue._catalog  # type: ignore[attr-defined]
    for source, text in known.items():
        if source and text != source and len(text) > 20 and not text.isascii():
            yield text.replace("\x04", " ")


def samples(folders: list[Path], half: int, per_codec: int) -> Iterator[tuple[str, str, bytes]]:
    """Language, codec, and the bytes of a text that the codec can write."""
    counts = Counter[tuple[str, str, int]]()
    for folder in folders:
        for language, kept in texts(folder):
            whole = unicodedata.normalize("NFC", kept.lstrip("\ufeff"))
            at = 0
            for number in range(30):
                size = SIZES[number % len(SIZES)]
                text, at = whole[at : at + size], at + size
                if len(text) < 60 or zlib.crc32(text.encode()) % 2 != half:
                    continue
                for codec in (*CODECS[language], *WIDE):
                    data = encoded(text, codec)
                    key = (language, codec, size)
                    if data is not None and counts[key] < per_codec:
                        counts[key] += 1
                        yield language, codec, data


def encoded(text: str, codec: str) -> bytes | None:
    """The bytes; None where the codec has not all letters, or the text has no other than ASCII."""
    special = sum(letter > "\x7f" for letter in text)
    if special < max(3, 0.005 * len(text)):
        return None
    if codec == "cp1258":
        text = _vietnamese(text)
    try:
        data = text.encode(codec)
    except UnicodeEncodeError:
        return None
    return data


def _vietnamese(text: str) -> str:
    """Tones apart from their letters, as the code page has them."""
    parts = []
    for letter in text:
        apart = unicodedata.normalize("NFD", letter)
        tones = "".join(mark for mark in apart if mark in "\u0300\u0301\u0303\u0309\u0323")
        base = unicodedata.normalize("NFC", "".join(mark for mark in apart if mark not in tones))
        parts.append(base + tones)
    return "".join(parts)


def by_kb(data: bytes) -> str | None:
    return decode_text(data)[0] if is_text(data) else None


def by_chardet(data: bytes) -> str | None:
    import chardet

    name = chardet.detect(data, compat_names=False)["encoding"]
    return data.decode(name, "replace") if name else None


def by_normalizer(data: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    return str(best) if best else None


READERS: dict[str, Decode] = {"kb": by_kb, "chardet": by_chardet, "normalizer": by_normalizer}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--half", type=int, default=1)
    parser.add_argument("--by", choices=READERS, default="kb")
    parser.add_argument("--per-codec", type=int, default=4, help="of each language and length")
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    options = parser.parse_args()
    folders = [folder for folder in options.folders if folder.is_dir()]
    if not folders:
        print("skipped: no folder with texts is there; name some with DATA")
        return
    read = READERS[options.by]
    right: dict[str, list[bool]] = defaultdict(list)
    for folder in folders:
        for path in sorted(folder.rglob("sample-*.txt")):
            if codec := SAMPLES.get(path.name):
                data = path.read_bytes()
                right["(files)"].append(read(data) == data.decode(codec))
    wrong = Counter[tuple[str, str, int]]()
    for language, codec, data in samples(folders, options.half, options.per_codec):
        text = data.decode(codec)
        is_right = read(data) == text
        right[codec].append(is_right)
        if not is_right:
            wrong[language, codec, min(SIZES, key=lambda size: abs(size - len(text)))] += 1
            if options.show:
                said = decode_text(data)[1]
                print(f"{language} {codec}: {said}: {text[:70]!r}")
    for codec, results in sorted(right.items()):
        print(f"{codec:12} {sum(results):4} of {len(results):4}")
    every = [is_right for results in right.values() for is_right in results]
    for (language, codec, size), number in wrong.most_common(30):
        print(f"  wrong: {number} of {language} in {codec}, {size} letters")
    print(f"all: {sum(every)} of {len(every)} exactly, {sum(every) / max(1, len(every)):.1%}")


if __name__ == "__main__":
    main()
