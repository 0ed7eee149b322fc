"""The share of 24-mers that sequences have in common with others, by plain Python sets."""

K = 24
HELIX = str.maketrans("ACGT", "TGCA")


def turn(text: str) -> str:
    """Return the reverse complement."""
    return text.translate(HELIX)[::-1]


def spell(text: str) -> list[str]:
    """List the 24-mers of A, C, G and T, position by position."""
    words = (text[i : i + K] for i in range(len(text) - K + 1))
    return [w for w in words if set(w) <= set("ACGT")]


def share_in(query: list[str], train: list[str]) -> list[float]:
    """The share of each query's 24-mers that stand in train on either strand; NaN without any."""
    asked = {w: False for text in query for w in (*spell(text), *spell(turn(text)))}
    for text in train:
        for at in range(len(text) - K + 1):
            word = text[at : at + K]
            if word in asked:
                asked[word] = True
    return [
        sum(asked[w] or asked[turn(w)] for w in words) / len(words) if words else float("nan")
        for words in map(spell, query)
    ]
