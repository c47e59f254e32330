"""Which passages words cannot judge, and how far a model is trusted with a language."""

import numpy as np
import pytest

from kb.intake.embed.onnx import make
from kb.intake.embed.scripts import familiarity
from kb.model.embedder import EmbedderChoice
from kb.search.fuse import LegScores, fuse
from kb.search.languages import foreign_places, is_foreign, letter_pairs, pooled

NAN = float("nan")
TEXTS = {
    "en": """The committee decided on Thursday that the new bridge would be opened in spring,
although several residents had complained about the noise. The mayor said that costs had risen.
|Water boils at a lower temperature on high mountains, since the pressure of the air is lower.
Cooks who live above two thousand metres simmer beans for longer.""",
    "tr": """Komisyon perşembe günü, bazı sakinlerin gürültüden şikâyet etmesine rağmen yeni
köprünün ilkbaharda açılmasına karar verdi. Belediye başkanı maliyetlerin arttığını söyledi.
|Yüksek dağlarda su daha düşük sıcaklıkta kaynar, çünkü orada hava basıncı daha düşüktür. İki bin
metrenin üzerinde yaşayanlar fasulyeyi daha uzun süre pişirir.""",
    "ru": """Комитет решил в четверг, что новый мост откроют весной, хотя несколько жителей
жаловались на шум. Работы начались два года назад и задержались из-за наводнений.
|Высоко в горах вода кипит при более низкой температуре, потому что давление воздуха там ниже.""",
    "zh": """委员会周四决定新桥将于春天开放，尽管有几位居民抱怨噪音。市长说，费用上涨了三分之一。
|在高山上，水在较低的温度下沸腾，因为那里的气压较低。住在高原的人煮豆子要煮得更久。""",
    "ja": """委員会は木曜日、騒音への苦情があったものの、新しい橋を春に開通させることを決めた。
|高い山では気圧が低いので、水は低い温度で沸騰する。そのため豆を煮る時間が長くなる。""",
    "ko": """위원회는 목요일에 새 다리를 봄에 개통하기로 결정했다. 주민 몇 명은 불평했다.
|높은 산에서는 기압이 낮아 물이 더 낮은 온도에서 끓는다. 그래서 콩을 더 오래 삶는다.""",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_language_is_like_itself_alone(language: str) -> None:
    """Two short texts about different things are of one language, and of no other."""
    first, second = TEXTS[language].split("|")
    assert not is_foreign(first, letter_pairs(first), letter_pairs(second))
    pairs = pooled(map(letter_pairs, (first, second)))
    for other in TEXTS.keys() - {language}:
        assert is_foreign(TEXTS[other], letter_pairs(TEXTS[other]), pairs), other


def test_what_words_find_tells_the_language() -> None:
    """The passages by meaning that are in another language than the query are marked."""
    found = [part for part in TEXTS["tr"].split("|") for _ in range(3)]
    texts = [TEXTS["en"], TEXTS["zh"], "12 345", *found]
    lexical = np.array([NAN] * 3 + [8.0, 7.0, 6.0, 5.0, 4.0, 3.0])
    dense = np.linspace(0.9, 0.5, len(texts))

    def marked(lexical: np.ndarray, sources: int = len(texts)) -> list[bool]:
        query = "yeni köprü ne zaman açılıyor?"
        read = lambda place: (place % sources, texts[place])  # noqa: E731
        return [bool(mark) for mark in foreign_places(query, lexical, dense, read)]

    assert marked(lexical) == [True, True] + [False] * 7
    assert not any(marked(np.full(len(texts), NAN)))
    # A word of few docs says too little.
    assert not any(marked(lexical, sources=4))


def test_a_leg_that_cannot_judge_is_silent() -> None:
    """A translation that words missed comes before a passage that words hardly found."""
    words = np.array([9.0, 4.0, NAN])
    meaning = LegScores(scores=np.array([0.9, 0.4, 0.85]), weight=0.5)
    silent = np.array([False, False, True])

    def best(said: np.ndarray | None) -> list[int]:
        leg = LegScores(scores=words, weight=0.5, floor=0.0, silent=said)
        return np.argsort(-fuse([leg, meaning], k=60, spaced=True, spacing_min=200)).tolist()

    assert best(silent) == [0, 2, 1]
    assert fuse(
        [LegScores(scores=words, weight=0.5, silent=silent), meaning], k=60, spaced=False
    ).max() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("question", "known"),
    [
        ("how do I renew my passport", True),
        ("what causes boundary layer separation at supersonic speed", True),
        ("Bu sezon takımdaki en fazla sack etmeyi kim kaydetmiştir?", False),
        ("Hàng thủ của đội Panthers đã để thua bao nhiêu điểm?", False),
        ("Câte puncte a cedat apărarea echipei Panthers?", False),
        ("1984 ?", True),
    ],
)
def test_the_builtin_model_knows_english(question: str, known: bool) -> None:
    """Its tokenizer has the words of English whole, and others in pieces."""
    model = make(EmbedderChoice(kind="onnx"), 1)
    (tokens,) = model.count_tokens([question])
    assert familiarity(question, tokens) == (1.0 if known else pytest.approx(0.0, abs=0.5))
