"""Passages of fifteen languages in one home, each found by what its reader types."""

from pathlib import Path

import pytest
from commands import Home

SENTENCES = {
    "hant": "臺灣大學的圖書館在週日下午五點關門。",
    "hans": "旅行社推荐去云南看梯田和古城。",
    "japanese": "東京タワーの展望台へは階段でも登れる。緑茶と和菓子の店もある。",
    "korean": "주말에 서울에서 열린 시장에는 물과 빵을 파는 가게가 많았다.",
    "thai": "น้ำตกแห่งนี้อยู่ห่างจากตัวเมืองสามสิบกิโลเมตร",
    "arabic": "وَصَلَ القِطَارُ إِلَى مَحَطَّةِ الإِسْكَنْدَرِيَّةِ مُتَأَخِّرًا",
    "hebrew": "הרכבת יוצאת מחיפה בשעה שמונה, שָׁלוֹם לכולם.",
    "russian": "В саду выросла молодая ёлка, а под ней грибы.",
    "greek": "Ο γιατρός έδωσε στον άνθρωπο ένα φάρμακο για τον πυρετό.",
    "hindi": "यह फ़िल्म हिन्दी में बनी और बाज़ार में खूब बिकी।",
    "turkish": "Iğdır'da kayısı ağaçları çiçek açtı, İzmir'de deniz ısındı.",
    "vietnamese": "Cầu Rồng ở Đà Nẵng phun lửa vào tối thứ bảy.",
    "german": "Die Straße zum Fußballplatz ist wegen Glätte gesperrt.",
    "danish": "Til frokost var der smørrebrød med sild og løg.",
    "french": "Le cœur de la forêt abrite un chêne très âgé.",
}
TYPED = [
    ("hant", "台湾大学图书馆"),
    ("hans", "雲南古城"),
    ("japanese", "東京ﾀﾜｰ"),
    ("japanese", "茶"),
    ("korean", "서울"),
    ("korean", "물"),
    ("thai", "นํ้าตก"),
    ("arabic", "الاسكندرية"),
    ("hebrew", "שלום"),
    ("russian", "ЕЛКА"),
    ("greek", "ΑΝΘΡΩΠΟ"),
    ("hindi", "हिंदी फिल्म"),
    ("turkish", "igdir"),
    ("vietnamese", "da nang"),
    ("german", "strasse fussballplatz"),
    ("danish", "smorrebrod"),
    ("french", "coeur chene"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a file of each language, which the tests only read."""
    folder = tmp_path_factory.mktemp("languages")
    files = folder / "files"
    files.mkdir()
    for name, sentence in SENTENCES.items():
        (files / f"{name}.txt").write_text(sentence, encoding="utf-8")
    home = Home(folder / "home")
    assert home.run("add", "-r", files).code == 0
    return home


@pytest.mark.parametrize(("language", "typed"), TYPED)
def test_what_is_typed_finds_its_passage(home: Home, language: str, typed: str) -> None:
    """By words alone, first of all languages."""
    hits = home.run("search", typed, "--mode", "lexical", "--json").json["hits"]
    assert Path(hits[0]["source"]).stem == language
