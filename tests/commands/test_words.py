"""Words that `docs/glossary.md` has replaced do not come back as names."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPLACED = {
    "account", "calm", "caution", "drawn_along", "foretold", "idle", "journey", "lasting", "leap", "mend", "nobody", "owed",
    "ripe", "rouse", "rubs", "rubbing", "somebody", "steady", "strikes", "struck", "tightness", "track", "traveller", "twin",
    "whoever",
}  # fmt: skip


@pytest.mark.parametrize("package", ["abd/step", "abd/backends", "abd/contact", "abd/potentials", "abd/api", "cuda_kernels"])
def test_names_use_the_vocabulary(package):
    found = set()
    for file in (ROOT / package).rglob("*.py"):
        for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
            if token.type == tokenize.NAME:
                parts = {token.string, *re.split(r"_|(?<=[a-z])(?=[A-Z])", token.string)}
                found |= {(file.name, word) for word in parts if word.lower() in REPLACED}
    assert not found
