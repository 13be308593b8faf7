"""Writes the generated files of the chart: copies, the table of its README, and the examples' renderings.

python -m tests.helm.update
"""

from __future__ import annotations

import shutil
import sys

from tests.helm.chart import EXAMPLES, NOT_KEPT, copies, split_rendering
from tests.helm.helm_command import find_helm, render


def main() -> None:
    for file, text in copies().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    helm = find_helm()
    if helm is None:
        sys.exit(
            "the renderings were not written: there is no helm (tests/containers/install_helm.sh makes one)"
        )
    for example in EXAMPLES:
        done = render(helm, "-f", example.values)
        if done.returncode:
            sys.exit(done.stderr)
        shutil.rmtree(example.rendered, ignore_errors=True)
        for path, text in split_rendering(done.stdout).items():
            if path in NOT_KEPT:
                continue
            file = example.rendered / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


if __name__ == "__main__":
    main()
