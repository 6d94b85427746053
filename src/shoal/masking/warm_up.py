"""Warm-up: all steps run on a small table, so that processes forked afterwards inherit the loaded kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.core.progress import fresh_state
from shoal.kernels.counting_sort import put_rows
from shoal.kernels.words import words_of
from shoal.masking.aggregate import mask_bucket
from shoal.masking.confidential import Promise
from shoal.masking.group import BucketPlan
from shoal.masking.request import MaskRequest
from shoal.masking.verification import count_bucket, deal_for_counting

__all__ = ["warm_up"]

LARGEST = 20  # upper limit of k in a warm-up


def warm_up(request: MaskRequest, d: int) -> bool:
    """Load all kernels by masking a small table; return True if any was compiled, because compiling keeps memory."""
    from numba.core.event import install_recorder

    from shoal.blocks.blocking import InMemory, assign, extent_of, find_blocks
    from shoal.blocks.fusion import leaf_sums
    from shoal.blocks.rule import Blocking

    request = replace(request, k=min(request.k, LARGEST))  # kernels are the same for all k
    rows = 8 * request.k
    with install_recorder("numba:compile") as recorder:
        # The repeated records produce leaves of equal records, and leaves below k records that must be fused.
        X = np.arange(rows * d, dtype=np.float64).reshape(rows, d) ** 2
        X[: rows // 2] = X[0]
        roots = np.zeros(rows, dtype=np.int64)
        blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(2 * request.k, request.k, "one"))
        block = assign(0, X, roots, blocks)
        leaf_sums(X, block, blocks.frame, len(blocks.sizes))
        # A user's function must see only the user's records.
        if not request.entry.anytime and not request.entry.by_user:
            arrays = {"block": block, "X": X}
            if request.weights is not None:
                arrays["weights"] = np.ones(rows)
            if request.unit is not None:
                arrays["unit"] = np.arange(rows, dtype=np.uint64)
            if request.entry.confidential:
                request = replace(request, method="mdav", options={})
            plan = BucketPlan.of_numbers(request, d, blocks.scale, whole=False)
            plan = plan._replace(records=rows, amounts=tuple(range(d)))
            answers, _ = mask_bucket(arrays, fresh_state(), plan)
            put_rows(X, np.arange(rows, dtype=np.uint32), answers["released"])
            put_rows(np.zeros((rows, 1), dtype=np.int64), np.arange(rows, dtype=np.uint32), answers["group"][:, None])
        if request.confidential is not None or request.unit is not None:
            from shoal.promises.rule_enforcement import rehearse_rules

            rehearse_rules()
        _, sent = deal_for_counting(0, {"words": words_of(X)}, (roots, ()), 2)
        count_bucket(sent, fresh_state(), 1, d, True, Promise())
    return bool(recorder.buffer)
