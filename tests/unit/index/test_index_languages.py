"""What a person types finds the passage, in every language: real sentences, by words alone."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kb.search.index.analysis import (
    _HAN_CHARS,
    _NOT_SIMPLE_CHARS,
    _UNSPACED_CHARS,
    _letters_among,
    first_highlight,
    highlight_spans,
    query_words,
    terms,
    terms_in,
)
from kb.search.index.fold import _forms, _han_and_kana, _replaced

# Language, what is typed, a sentence that it must find.
FINDS = [
    ("zh-tw", "台湾大学", "她畢業於臺灣大學醫學系。"),
    ("zh-tw", "臺灣", "我们去年夏天去台湾旅行。"),
    ("zh-tw", "資料庫", "数据库和资料库的备份要分开保存。"),
    ("zh-tw", "头发", "理髮師把她的頭髮剪短了。"),
    ("ja", "東京ﾀﾜｰ", "東京タワーの高さは三百三十三メートルです。"),
    ("ja", "東京タワー", "東京ﾀﾜｰから富士山が見えた。"),
    ("ja", "りんご", "青森のリンゴは秋においしくなる。"),
    ("ja", "サーバ", "サーバーを再起動してください。"),
    ("ja", "國語", "国語の宿題を忘れた。"),
    ("ja", "経済", "明治の經濟政策について書かれた本。"),
    ("ja", "ガラス", "ガラスの窓を拭く。"),
    ("ko", "서울", "지난주에 서울에서 친구를 만났다."),
    ("ko", "물", "컵에 물을 가득 따랐다."),
    ("ko", "집", "집에서 일하는 사람이 늘었다."),
    ("ko", "책", "책은 도서관에 있다."),
    ("th", "น้ำตก", "เราไปเที่ยวน้ำตกเมื่อวานนี้"),
    ("th", "๒๕๖๗", "ราคาปี 2567 สูงขึ้นมาก"),
    ("th", "เเม่น้ำ", "บ้านของเขาอยู่ริมแม่น้ำ"),
    ("ar", "كتاب", "هٰذَا كِتَابٌ جَدِيدٌ"),
    ("ar", "كتاب", "كـــتاب قديم على الطاولة"),
    ("ar", "احمد", "وصل أحمد إلى المدرسة"),
    ("ar", "مستشفي", "نقلوه إلى مستشفى قريب"),
    ("ar", "2024", "صدر عام ٢٠٢٤"),
    ("fa", "كتابي", "کتابی روی میز است"),
    ("he", "שלום", "אמרתי לה שָׁלוֹם בבוקר"),
    ("ru", "елка", "Во дворе стоит ёлка."),
    ("ru", "замок", "Мы осмотрели старый за\u0301мок."),
    ("el", "ανθρωπος", "Κάθε άνθρωπος θέλει ηρεμία."),
    ("el", "ΟΔΥΣΣΕΑΣ", "Ο Οδυσσέας γύρισε στην Ιθάκη."),
    ("el", "Οδυσσεύς", "Ο ΟΔΥΣΣΕΥΣ ΣΤΗΝ ΙΘΑΚΗ"),
    ("hi", "फिल्म", "कल हमने नई फ़िल्म देखी।"),
    ("hi", "हिंदी", "वह हिन्दी पढ़ाती है।"),
    ("hi", "पंचायत", "गाँव की पञ्चायत बैठी।"),
    ("hi", "चाँद", "रात में चांद निकला।"),
    ("tr", "istanbul", "İstanbul'da yağmur yağıyor."),
    ("tr", "ISPARTA", "Isparta gülleriyle ünlüdür; ısparta."),
    ("vi", "da nang", "Cầu Rồng ở Đà Nẵng phun lửa."),
    ("de", "strasse", "Die Straße ist gesperrt."),
    ("da", "smorrebrod", "Vi spiste smørrebrød til frokost."),
    ("fr", "oeuvre", "Une œuvre de jeunesse."),
    ("en", "cafe", "The cafe\u0301 is closed."),
    ("en", "cooperate", "They co\u00adoperate."),
    ("en", "full width 42", "Ｆｕｌｌ ｗｉｄｔｈ ４２"),
]


@pytest.mark.parametrize(("language", "typed", "sentence"), FINDS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_what_is_typed_is_among_the_words(
    language: str, typed: str, sentence: str, form: str
) -> None:
    """Every word of the query that the sentence has is found, however its letters are coded."""
    typed = unicodedata.normalize(form, typed)
    spelled = frozenset(query_words(typed, stems=False))
    assert spelled <= frozenset(query_words(sentence, stems=False)), language
    assert terms_in(sentence, frozenset(terms(typed))), language


# Words that differ by more than how they are written.
APART = [
    ("th", "นา", "ดื่มน้ำเย็น"),
    ("ru", "мои", "мой"),
    ("ko", "물", "건물"),
    ("ja", "ハス", "バス"),
    ("he", "שלום", "שלומי"),
]


@pytest.mark.parametrize(("language", "typed", "sentence"), APART)
def test_other_words_stay_apart(language: str, typed: str, sentence: str) -> None:
    """A folded letter never makes one word of two that a reader tells apart."""
    assert not terms_in(sentence, frozenset(terms(typed))), language


@pytest.mark.parametrize(
    ("typed", "text", "marked"),
    [
        ("台湾", "我愛臺灣的夏天", ["臺灣"]),
        ("りんご", "青森のリンゴ", ["リンゴ"]),
        ("น้ำตก", "ไปน้ำตก", ["น้ำตก"]),
        ("फिल्म", "नई फ़िल्म देखी", ["फ़िल्म"]),
        ("كتاب", "هذا كِتَابٌ جديد", ["كِتَابٌ"]),
    ],
)
def test_what_is_marked_is_the_text_as_it_stands(typed: str, text: str, marked: list[str]) -> None:
    """Highlights are cut from the text, whatever form of a letter was typed."""
    assert [text[a:b] for a, b in highlight_spans(text, terms(typed))] == marked


@given(
    st.text() | st.text("tea Teapot'\u201d\u0301茶壶ティーชาน้ำ차फ़ क", max_size=60),
    st.sampled_from(["tea", "teapot pot", "茶壶 tea", "ティー", "น้ำ ชา", "फ़"]),
)
def test_the_first_highlight_is_the_first_of_all(text: str, typed: str) -> None:
    """It is found without the others, whatever the scripts of text and terms."""
    found = frozenset(terms(typed))
    spans = highlight_spans(text, found)
    assert first_highlight(text, found) == (spans[0][0] if spans else None)


@example("ঽ")
@given(st.text() | st.text("aé茶々〇ティー〆ชา฿한กᄀ\U00020000\u0301क"))
def test_letters_are_told_as_by_a_pattern(text: str) -> None:
    """Each class of characters has the letters that a pattern of it finds."""
    for characters in (_HAN_CHARS, _UNSPACED_CHARS, _NOT_SIMPLE_CHARS):
        by_pattern = set(re.findall(f"[{characters}]", text))
        assert set(_letters_among(text, characters)) == by_pattern


@given(st.text() | st.text(st.sampled_from(sorted(_forms()))))
def test_each_letter_is_folded_by_itself(text: str) -> None:
    """No form has a letter with another form, so the letters may be replaced in any order."""
    for forms in (_forms(), _han_and_kana()):
        assert forms.keys().isdisjoint("".join(forms.values()))
        assert _replaced(text, forms) == "".join(forms.get(letter, letter) for letter in text)
