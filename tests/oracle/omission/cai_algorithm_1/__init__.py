"""Algorithm 1 of cai-2021 as published, over the paper's three tuple stores.

Tests and benchmarks compare Tamis's own kernels with it; services don't use it. It retains the same tuples as
`tamis.omission.retained` with `ties="strict"` and both sides. `greedy` is the algorithm over any `store`, and
`sorter` is the paper's threshold sorter around it.
"""

from tests.oracle.omission.cai_algorithm_1.linked_list import LINKED_LIST
from tests.oracle.omission.cai_algorithm_1.red_black_tree import RED_BLACK_TREE
from tests.oracle.omission.cai_algorithm_1.skip_list import SKIP_LIST
from tests.oracle.omission.cai_algorithm_1.sorter import ThresholdSorter
from tests.oracle.omission.cai_algorithm_1.store import NONE, Store

__all__ = ["LINKED_LIST", "NONE", "RED_BLACK_TREE", "SKIP_LIST", "Store", "ThresholdSorter"]
