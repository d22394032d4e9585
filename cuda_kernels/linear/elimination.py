"""Symbolic part of a sparse Cholesky factorisation: the elimination tree, its postorder and the fill.

Every kernel is one item on the CPU with loops of dependent steps over a graph, run once per pattern.
Source: Liu, The Role of Elimination Trees in Sparse Factorization (1990); Davis, Direct Methods for Sparse Linear
Systems (2006), chapter 4.
"""

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cpu",)


@wp.func
def merge_neighbours(
    a: wp.int32,
    eliminated_row: wp.int32,
    lists: wp.array2d(dtype=wp.int32),
    degree: wp.array(dtype=wp.int32),
):
    """Replace row `eliminated_row` in the list of row a by its other neighbours."""
    length = wp.int32(0)
    for e in range(degree[a]):
        if lists[a, e] != eliminated_row:
            lists[a, length] = lists[a, e]
            length = length + 1
    for e in range(degree[eliminated_row]):
        b = lists[eliminated_row, e]
        known = wp.int32(0)
        if b == a:
            known = wp.int32(1)
        for q in range(length):
            if lists[a, q] == b:
                known = wp.int32(1)
        if known == 0:
            lists[a, length] = b
            length = length + 1
    degree[a] = length


@wp.kernel
def eliminate_in_rounds(
    first: wp.int32,
    most: wp.int32,
    lists: wp.array2d(dtype=wp.int32),
    degree: wp.array(dtype=wp.int32),
    touched: wp.array(dtype=wp.int32),
    left: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
):
    """Eliminate the quarter of the rows with the fewest neighbours, in rounds of independent rows, while a round is efficient.

    lists (N, capacity): neighbours, their number in `degree` (N,), -1 for rows beyond the capacity, which are not eliminated.
    touched (N,): -1 initially; left (N,): scratch; order (N,), count (1,): the eliminated rows.
    """
    n = degree.shape[0]
    capacity = lists.shape[1]
    for i in range(first, n):
        left[i] = i
    remaining = n
    eliminated = wp.int32(0)
    turn = wp.int32(0)
    continues = wp.int32(1)
    while continues == 1 and remaining > 0:
        limit = wp.int32(-1)
        low = wp.int32(0)
        while limit < most and 4 * low < remaining:
            limit = limit + 1
            low = wp.int32(0)
            for q in range(remaining):
                if degree[left[q]] >= 0 and degree[left[q]] <= limit:
                    low = low + 1
        before = eliminated
        length = wp.int32(0)
        for q in range(remaining):
            i = left[q]
            free = wp.int32(0)
            if degree[i] >= 0 and degree[i] <= limit and touched[i] != turn:
                free = wp.int32(1)
                for e in range(degree[i]):
                    if degree[lists[i, e]] + degree[i] - 2 > capacity:
                        free = wp.int32(0)
            if free == 1:
                for e in range(degree[i]):
                    a = lists[i, e]
                    touched[a] = turn
                    if degree[a] >= 0:
                        merge_neighbours(a, i, lists, degree)
                order[eliminated] = i
                eliminated = eliminated + 1
            else:
                left[length] = i
                length = length + 1
        turn = turn + 1
        continues = wp.where(32 * (eliminated - before) >= remaining, 1, 0)
        remaining = length
    count[0] = eliminated


@wp.kernel
def find_tree(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    columns: wp.array(dtype=wp.int32),
    parent: wp.array(dtype=wp.int32),
    ancestor: wp.array(dtype=wp.int32),
):
    """Compute the parent of every row (N,) in the elimination tree, -1 for roots, from symmetric lists of neighbours."""
    for i in range(first, parent.shape[0]):
        parent[i] = -1
        ancestor[i] = -1
        for e in range(starts[i], starts[i + 1]):
            k = columns[e]
            while k != -1 and k < i:
                above = ancestor[k]
                ancestor[k] = i
                if above == -1:
                    parent[k] = i
                k = above


@wp.kernel
def find_postorder(
    first: wp.int32,
    parent: wp.array(dtype=wp.int32),
    rights: wp.array(dtype=wp.int32),
    child: wp.array(dtype=wp.int32),
    sibling: wp.array(dtype=wp.int32),
    stack: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
):
    """Order rows (N,) with contiguous subtrees and children before their parent; child, sibling and stack are scratch.

    A child with the same blocks to its right as its parent, by their numbers `rights` (N,), directly precedes it.
    """
    n = parent.shape[0]
    for i in range(first, n):
        child[i] = -1
    for turn in range(2):
        for k in range(n):
            i = n - 1 - k
            above = parent[i]
            if above >= 0:
                # the last entry is visited first
                if (turn == 0) == (rights[i] == rights[above] + 1):
                    sibling[i] = child[above]
                    child[above] = i
    count = wp.int32(0)
    for root in range(n):
        if parent[root] == -1:
            depth = wp.int32(0)
            stack[0] = root
            while depth >= 0:
                i = stack[depth]
                below = child[i]
                if below == -1:
                    order[count] = i
                    count = count + 1
                    depth = depth - 1
                else:
                    child[i] = sibling[below]
                    depth = depth + 1
                    stack[depth] = below


@wp.kernel
def add_to_parents(first: wp.int32, parent: wp.array(dtype=wp.int32), values: wp.array(dtype=wp.float64)):
    """Sum values (N,) of rows over their subtrees, children before parents."""
    for i in range(first, parent.shape[0]):
        if parent[i] >= 0:
            values[parent[i]] = values[parent[i]] + values[i]


@wp.kernel
def find_heights(first: wp.int32, parent: wp.array(dtype=wp.int32), height: wp.array(dtype=wp.int32)):
    """Compute the longest path (N,) down to a leaf; initially zero."""
    for i in range(first, parent.shape[0]):
        if parent[i] >= 0:
            height[parent[i]] = wp.max(height[parent[i]], height[i] + 1)


@wp.kernel
def count_fill(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    columns: wp.array(dtype=wp.int32),
    parent: wp.array(dtype=wp.int32),
    mark: wp.array(dtype=wp.int32),
    rights: wp.array(dtype=wp.int32),
    ups: wp.array(dtype=wp.int32),
):
    """Count blocks right of the diagonal per row (N,) of U, and above it per column (N,)."""
    n = parent.shape[0]
    for i in range(first, n):
        mark[i] = i
        rights[i] = 0
        ups[i] = 0
        for e in range(starts[i], starts[i + 1]):
            k = columns[e]
            while k < i and mark[k] != i:
                mark[k] = i
                rights[k] = rights[k] + 1
                ups[i] = ups[i] + 1
                k = parent[k]


@wp.kernel
def fill_rows(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    columns: wp.array(dtype=wp.int32),
    parent: wp.array(dtype=wp.int32),
    mark: wp.array(dtype=wp.int32),
    slots: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
):
    """List row and column (K,) of every slot; `slots` (N,) is initially the first slot of every row."""
    n = parent.shape[0]
    for i in range(first, n):
        mark[i] = i
        row[slots[i]] = i
        column[slots[i]] = i
        slots[i] = slots[i] + 1
        for e in range(starts[i], starts[i + 1]):
            k = columns[e]
            while k < i and mark[k] != i:
                mark[k] = i
                row[slots[k]] = k
                column[slots[k]] = i
                slots[k] = slots[k] + 1
                k = parent[k]


@wp.kernel
def list_products(
    first: wp.int32,
    counts_only: wp.int32,
    starts: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    ups: wp.array(dtype=wp.int32),
    up_row: wp.array(dtype=wp.int32),
    up_slot: wp.array(dtype=wp.int32),
    mark: wp.array(dtype=wp.int32),
    places: wp.array(dtype=wp.int32),
    left: wp.array(dtype=wp.int32),
    right: wp.array(dtype=wp.int32),
):
    """List slots of U_kj and U_ki of the products U_kj^T U_ki of every slot by ascending k, or count them only; mark (N,) is
    scratch. `places` (K,) is initially the first of each, or zero, and finally the one after its last."""
    for j in range(first, mark.shape[0]):
        for s in range(starts[j], starts[j + 1]):
            mark[column[s]] = s
        for e in range(ups[j], ups[j + 1]):
            for t in range(up_slot[e], starts[up_row[e] + 1]):
                s = mark[column[t]]
                if counts_only == 0:
                    left[places[s]] = up_slot[e]
                    right[places[s]] = t
                places[s] = places[s] + 1


@wp.kernel
def list_updates(
    first: wp.int32,
    counts_only: wp.int32,
    panels: wp.array(dtype=wp.int32),
    panel: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    places: wp.array(dtype=wp.int32),
    up_panel: wp.array(dtype=wp.int32),
    up_reach: wp.array(dtype=wp.int32),
):
    """List, for every panel (P,), the panels before it with a block in the columns of its rows, and the reach of their first such
    block, or count them only. `places` (P,) is initially the first entry of every panel, or zero."""
    for k in range(first, places.shape[0]):
        last = panels[k + 1] - 1
        last_panel = k
        for s in range(starts[last] + 1, starts[last + 1]):
            other = panel[column[s]]
            if other != last_panel:
                if counts_only == 0:
                    up_panel[places[other]] = k
                    up_reach[places[other]] = starts[last + 1] - s
                places[other] = places[other] + 1
                last_panel = other
