"""Lists of the bodies on which joint rows act, built once per joint system for sums in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joints.measures.measures import MeasureKind
from abd.joints.rows.measured_rows import MeasuredRows
from abd.joints.rows.table import MeasureTable


def lists_of(owners: np.ndarray, codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort codes by owner, then by code; returns the starts (count + 1,) of the owners and the codes."""
    order = np.lexsort((codes, owners))
    return np.searchsorted(owners[order], np.arange(count + 1)), codes[order]


@dataclass(frozen=True)
class Ends:
    """Ends of measured rows: one end per row and body, sorted by row, then by body.

    A length under tension is stiff across its line as well (`cuda_kernels.joints.measured_rows.stiffen_sides`). Therefore each of
    the L terms `lengths` owns two more rows, R + 2k and R + 2k + 1, for the two directions across it; they have no energy.

    Attributes:
        lengths: (L,) terms whose measure is a length.
        row, body: (E,); of_row: (R + 2L + 1,) first end of every row.
        starts (E + 1,), entries: terms of every end: 2t for the child of term t, 2t + 1 for the parent.
        pairs: (k, 2) bodies, lower one first, that share a row.
        pair_starts (k + 1,), pair_entries (., 2): ends of every pair, the end of the lower body first.
    """

    lengths: np.ndarray
    row: np.ndarray
    body: np.ndarray
    of_row: np.ndarray
    starts: np.ndarray
    entries: np.ndarray
    pairs: np.ndarray
    pair_starts: np.ndarray
    pair_entries: np.ndarray


def ends_of(rows: MeasuredRows, table: MeasureTable, bodies: int) -> Ends:
    """Build the ends of all rows."""
    terms = np.arange(len(rows.term_measure))
    child, parent = table.child[rows.term_measure], table.parent[rows.term_measure]
    inner = parent >= 0
    body = np.concatenate([child, parent[inner]]).astype(np.int64)
    row = np.concatenate([rows.term_row, rows.term_row[inner]]).astype(np.int64)
    codes = np.concatenate([2 * terms, 2 * terms[inner] + 1])
    lengths = np.flatnonzero(table.kind[rows.term_measure] == MeasureKind.LENGTH)
    across = len(rows) + np.arange(2 * len(lengths))
    sides = np.repeat(lengths, 2)
    hung = inner[sides]
    across_keys = np.concatenate([across * bodies + child[sides], across[hung] * bodies + parent[sides][hung]])
    keys = np.unique(np.concatenate([row * bodies + body, across_keys.astype(np.int64)]))
    starts, entries = lists_of(np.searchsorted(keys, row * bodies + body), codes, len(keys))
    end_row, end_body = keys // bodies, keys % bodies
    of_row = np.searchsorted(end_row, np.arange(len(rows) + len(across) + 1))
    # combine every end with all later ends of its row
    later = of_row[end_row + 1] - 1 - np.arange(len(keys))
    a = np.repeat(np.arange(len(keys)), later)
    b = a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(later) - later, later)
    pair_keys, slot = np.unique(end_body[a] * bodies + end_body[b], return_inverse=True)
    pair_starts, order = lists_of(slot, np.arange(len(a)), len(pair_keys))
    return Ends(
        lengths=lengths,
        row=end_row,
        body=end_body,
        of_row=of_row,
        starts=starts,
        entries=entries,
        pairs=np.stack([pair_keys // bodies, pair_keys % bodies], axis=1),
        pair_starts=pair_starts,
        pair_entries=np.stack([a[order], b[order]], axis=1),
    )
