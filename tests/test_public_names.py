"""What ``import paritylab`` offers."""

import subprocess
import sys

import paritylab as pl


def test_every_public_name_is_what_it_says_also_after_its_module_was_imported():
    for name in pl.__all__:
        first, second = getattr(pl, name), getattr(pl, name)
        assert first is second, name
    assert callable(pl.measure)
    assert callable(pl.sweep)


def test_importing_the_package_imports_nothing_heavy():
    heavy = "jax", "numpy", "scipy", "polars", "matplotlib", "rich", "sklearn"
    code = f"import sys, paritylab; print([name for name in {heavy!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_the_core_and_the_engines_import_with_jax_and_numpy_alone():
    blocked = "scipy", "polars", "matplotlib", "rich", "optax", "sklearn"
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        "import paritylab as pl, paritylab.engines, paritylab.engines.curves\n"
        "print(pl.Setup(pl.Parity(n=30, k=3)).id)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert len(shown.strip()) == 16


def test_dir_has_the_public_names_and_nothing_else():
    assert [name for name in dir(pl) if not name.startswith("__")] == pl.__all__
