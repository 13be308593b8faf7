"""Algorithm 1 of cai-2021 as published, over the paper's three tuple stores: the peers of Tamis's own
kernels.

It retains what `tamis.omission.retained` does with `ties="strict"` and both sides. Services don't use it.
"""

from tamis.omission.algorithm_one.linked_list import LINKED_LIST
from tamis.omission.algorithm_one.red_black_tree import RED_BLACK_TREE
from tamis.omission.algorithm_one.skip_list import SKIP_LIST
from tamis.omission.algorithm_one.sorter import ThresholdSorter
from tamis.omission.algorithm_one.store import NONE, Store

__all__ = ["LINKED_LIST", "NONE", "RED_BLACK_TREE", "SKIP_LIST", "Store", "ThresholdSorter"]
