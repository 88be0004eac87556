"""Whether a reply speaks of every fact that it was given: what is left out is found, a rewording is no blame."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hymemory_adapters.core.coverage import Text, folded, left_out, says, similarity, uncarried


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("Likes tea", "likes  TEA\n", True),
        ("Stra\u00dfe", "STRASSE", True),
        ("Likes tea", "Likes tea.", False),
        ("", " \n", True),
    ],
)
def test_folded(text: str, other: str, same: bool) -> None:
    assert (folded(text) == folded(other)) is same


def test_folded_words_stand_one_space_apart() -> None:
    assert folded(" Likes\t TEA\n") == "likes tea"


def test_a_text_is_read_once_however_often_it_is_compared() -> None:
    read: list[str] = []

    class Counted(Text):
        def casefold(self) -> str:
            read.append(self)
            return super().casefold()

    text = Counted("!!! Likes tea")
    for other in ("Has a cat", "likes coffee", "likes tea"):
        says(text, other)
        uncarried([text], [other])
        uncarried([other], [text])
    assert read == [text, text], "for its white space, and for its words"


@pytest.mark.parametrize(
    ("text", "other", "share"),
    [
        ("Likes green tea", "Likes green tea a lot", 1.0),
        ("Likes green tea", "likes coffee", 1 / 3),
        ("Likes tea", "Has a cat", 0.0),
        ("\u559c\u6b22\u8336", "\u7528\u6237\u559c\u6b22\u7eff\u8336", 1.0),
        ("\u559c\u6b22\u8336", "\u4e0d\u8981", 0.0),
        ("Likes tea", "", 0.0),
        ("LINE\u0e0a\u0e2d\u0e1a", "\u0e0a\u0e2d\u0e1a LINE", 1.0),  # no space where the script changes
        ("!!!", "wow!!!", 1.0),
        ("!!!", "wow", 0.0),
    ],
)
def test_similarity(text: str, other: str, share: float) -> None:
    assert similarity(text, other) == pytest.approx(share)


@pytest.mark.parametrize(
    ("fact", "carrier", "said"),
    [
        ("Likes tea", "Likes tea and has a cat", True),
        ("Name is Alice", "The user's name is Alice", True),
        ("Moved to Oslo in 2024", "Lives in Oslo since 2024", True),
        ("Moved to Oslo in 2024", "Has a cat", False),
        ("Likes tea", "Drinks tea", True),  # half of the words will do
        ("\u559c\u6b22\u559d\u8336", "\u559c\u6b22\u559d\u7eff\u8336", True),
        ("\u0e0a\u0e2d\u0e1a\u0e0a\u0e32", "\u0e44\u0e21\u0e48", False),
    ],
)
def test_says(fact: str, carrier: str, said: bool) -> None:
    assert says(fact, carrier) is said


TEA, CAT, OSLO = "Likes green tea", "Has a cat named Tom", "Moved to Oslo in 2024"


@pytest.mark.parametrize(
    ("facts", "carriers", "left"),
    [
        pytest.param([TEA, CAT], [TEA, CAT], [], id="each_by_its_own"),
        pytest.param([TEA, CAT], [CAT, TEA], [], id="in_any_order"),
        pytest.param([TEA, CAT], ["Likes green tea; has a cat named Tom"], [], id="two_in_one"),
        pytest.param([TEA, CAT, OSLO], [TEA], [1, 2], id="two_left_out"),
        pytest.param([TEA, CAT], [], [0, 1], id="no_operation"),
        pytest.param([], [TEA], [], id="no_fact"),
        pytest.param([TEA, CAT], [TEA, TEA], [1], id="one_twice"),
        pytest.param([TEA, CAT], [TEA, "Besitzt einen Kater"], [], id="a_stranger_counts_for_one"),
        pytest.param([TEA, CAT, OSLO], [TEA, "Besitzt einen Kater"], [2], id="and_for_one_only"),
        pytest.param(["Likes tea", "Likes coffee"], ["Likes tea"], [1], id="half_of_the_words_in_common"),
        pytest.param(["Likes tea", "Likes coffee"], ["Likes tea and coffee"], [], id="both_said"),
        pytest.param(["Likes tea", "likes TEA"], ["Likes tea"], [], id="one_fact_twice"),
        pytest.param([TEA, CAT, OSLO], ["Besitzt einen Kater", "Mag Tee", OSLO], [], id="a_stranger_counts_each_time"),
        pytest.param([CAT, "Likes tea"], ["Drinks tea"], [0], id="half_of_the_words_is_no_stranger"),
        pytest.param(["Likes coffee", "Likes tea"], ["Likes tea"], [0], id="the_nearest_is_not_the_first"),
        pytest.param(
            ["Likes tea", "Likes tea with milk and sugar"], ["Likes tea with lemon"], [1], id="the_nearest_by_its_share"
        ),
        pytest.param(
            ["Likes tea with milk and sugar", "Likes sugar"], ["Tea with milk and honey"], [1], id="not_near_at_all"
        ),
        # The letters of "art" stand there, its word does not: the nearest is the other one.
        pytest.param(["art", "Likes tea"], ["Likes starting early"], [0], id="a_part_of_a_word"),
        # What has no words is said whole or not at all, and is the nearest like any fact that is said whole.
        pytest.param(["!!!", "Likes tea", "Likes coffee"], ["Likes tea!!!"], [], id="no_words_before_the_fact"),
        pytest.param(["Likes tea", "!!!", "Likes coffee"], ["Likes tea!!!"], [2], id="no_words_after_the_fact"),
    ],
)
def test_uncarried(facts: list[str], carriers: list[str], left: list[int]) -> None:
    assert uncarried(facts, carriers) == left


def test_a_stranger_need_not_count() -> None:
    assert uncarried([TEA, CAT, OSLO], [TEA, "Besitzt einen Kater"], credit_strangers=False) == [1, 2]


_words = st.lists(st.sampled_from(["tea", "cat", "Oslo", "\u8336", "likes", "has", "!"]), min_size=1, max_size=4).map(
    " ".join
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_words, max_size=5), st.lists(_words, max_size=5))
def test_a_fact_that_is_repeated_word_for_word_is_carried(facts: list[str], carriers: list[str]) -> None:
    left = uncarried(facts, [*carriers, *facts])
    assert left == []
    some = uncarried(facts, carriers)
    assert some == sorted(set(some))
    assert not [index for index in some if facts[index] in carriers]


MANY = [f"User likes {thing}" for thing in ("tea", "cats", "rain", "chess", "Oslo")]


@pytest.mark.parametrize(
    ("facts", "carriers", "gone"),
    [
        (MANY, MANY, []),
        (MANY, ["User likes tea, cats, rain, chess and Oslo"], []),
        (MANY, ["The user enjoys tea and cats", "Likes rain, chess, Oslo"], []),
        (MANY, MANY[1:], [0]),  # "user" and "likes", which the others have, say nothing of tea
        (MANY, ["User likes things"], [0, 1, 2, 3, 4]),
        (MANY, [], [0, 1, 2, 3, 4]),
        (["User lives in Oslo", "Lives in Oslo", "Has a dog"], ["Lives in Oslo", "Has a dog"], []),
        (["User lives in Oslo", "Has a dog"], ["User now lives in Bergen, was in Oslo", "Owns a dog"], []),
        (["\u559c\u6b22\u8336", "\u4f4f\u5728\u5965\u65af\u9646"], ["\u4f4f\u5728\u5965\u65af\u9646"], [0]),
        (["!!!", "Has a dog"], ["Has a dog"], [0]),
        (["!!!"], ["Says !!! a lot"], []),
        (["Likes tea"], ["Drinks tea"], []),  # half of the weight will do
        ([], ["Has a dog"], []),
    ],
)
def test_left_out(facts: list[str], carriers: list[str], gone: list[int]) -> None:
    assert left_out(facts, carriers) == gone


@given(st.lists(st.text()))
def test_nothing_is_left_out_of_the_same_list(facts: list[str]) -> None:
    assert left_out(facts, facts) == []
