"""Checks of the columns of DataFrames, before Spark runs anything."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tamis.declarations.definitions import Rate
from tamis.declarations.units import parse_rate
from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.wording.names import suggest

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FRACTIONS = (T.FloatType, T.DoubleType)
_TIMES = (T.TimestampType, T.TimestampNTZType)
_NESTED = (T.ArrayType, T.MapType, T.StructType, T.VariantType)
# More digits don't fit into a DOUBLE.
_MOST_DIGITS = 15
# Where Spark keeps the delay of a watermark, and where Tamis keeps how far rows may be behind it.
_DELAY = "spark.watermarkDelayMs"
LAG = "tamis.lag"
# Each group of a stream costs some milliseconds a batch.
_OF_STREAMS = 16
_STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def column(name: str) -> Column:
    """The column of this name, which may have dots."""
    return F.col("`" + name.replace("`", "``") + "`")


def check_frame(df: object, where: str) -> None:
    """Raise InputError if it is no DataFrame of PySpark, or has two columns of one name."""
    if not isinstance(df, DataFrame):
        name = f"{type(df).__module__}.{type(df).__qualname__}"
        hint = "give a DataFrame of PySpark; tamis.omit takes other frames"
        raise InputError(f"{name} is no DataFrame of PySpark", where=where, hint=hint)
    twice = [name for name in df.columns if df.columns.count(name) > 1]
    if twice:
        raise InputError(f"two columns {twice[0]}", where=where, hint="rename one of them")
    dotted = [name for name in df.columns if "." in name]
    if dotted and not df.isStreaming:  # PySpark takes them for fields of structs
        raise InputError(f"a dot is in the name of column {dotted[0]}", where=where, hint="rename it")


def key_of(key: str | Sequence[str]) -> tuple[str, ...]:
    """The columns of a key. Raises InputError if they are no names."""
    names: object = (key,) if isinstance(key, str) else key
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{key!r} is no key", where="key", hint="give a name, or a list of names")
    return tuple(names)


def check_column(df: DataFrame, name: str, where: str) -> T.DataType:
    """The type of a column. Raises InputError if there is none of this name."""
    if not isinstance(name, str):
        raise InputError(f"{name!r} is no name of a column", where=where, hint="give its name as text")
    if name not in df.columns:
        listed = ", ".join(df.columns)
        raise InputError(f"no column {name}", where=where, hint=suggest(name, df.columns, f"it has {listed}"))
    return df.schema[name].dataType


def check_time(df: DataFrame, name: str, where: str) -> None:
    """Raise InputError if the column has no timestamps."""
    kind = check_column(df, name, where)
    if not isinstance(kind, _TIMES):
        raise InputError(
            f"the type is {kind.simpleString()}, and event times are timestamps",
            where=f"{where}, column {name}",
            hint="cast it to timestamp",
        )


def check_value(df: DataFrame, name: str, where: str) -> None:
    """Raise InputError if values of the column can't be compared as DOUBLEs."""
    kind = check_column(df, name, where)
    if isinstance(kind, T.DecimalType) and kind.precision <= _MOST_DIGITS:
        return
    if not isinstance(kind, _WHOLE + _FRACTIONS):
        raise InputError(
            f"values of type {kind.simpleString()} can't be compared as numbers of type double",
            where=f"{where}, column {name}",
            hint="cast it to double",
        )


def check_key(df: DataFrame, key: Sequence[str], where: str) -> None:
    """Raise InputError if a column can't be part of a key."""
    for name in key:
        kind = check_column(df, name, where)
        if isinstance(kind, _NESTED + _FRACTIONS):
            raise InputError(
                f"values of type {kind.simpleString()} can't be a key",
                where=f"{where}, column {name}",
                hint="make a column of text or whole numbers of it",
            )


def lag_of(df: DataFrame, name: str, where: str) -> int:
    """The time by which rows of a stream may be behind its watermark, in microseconds: 0, or what `retain`
    says. Raises InputError if the column has no watermark.
    """
    metadata = df.schema[name].metadata
    if LAG in metadata:
        return int(metadata[LAG])
    if _DELAY not in metadata:
        raise InputError(
            f"column {name} of the stream has no watermark",
            where=where,
            hint=f"call withWatermark({name!r}, '10 seconds') on it, with the delay that readings can have",
        )
    return 0


def check_state_store(df: DataFrame) -> None:
    """Raise InputError if the session has no state store for stateful operators of Python."""
    found = df.sparkSession.conf.get(_STATE_STORE, None)
    if found != _ROCKSDB:
        raise InputError(
            f"streams need RocksDB as the state store, and it is {found}",
            where=_STATE_STORE,
            hint=f"spark.conf.set({_STATE_STORE!r}, {_ROCKSDB!r})",
        )


def groups_of(groups: int | None, df: DataFrame) -> int:
    """The number of groups of keys. Raises InputError if it isn't a whole number of at least 1."""
    if groups is None:
        partitions = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
        return _OF_STREAMS if df.isStreaming else int(partitions or _OF_STREAMS)
    if isinstance(groups, bool) or groups < 1:
        raise InputError(f"{groups!r} is no number of groups", where="groups", hint="give 1 or more")
    return groups


def rate_of(rate: object, where: str) -> Rate | None:
    """A rate from its text. Raises InputError if it is no rate."""
    if rate is None:
        return None
    if not isinstance(rate, str):
        raise InputError(f"{rate!r} is no rate", where=where, hint="write text such as '10/s'")
    return parse_rate(rate)


def check_text(text: object, where: str) -> None:
    """Raise InputError if an argument is no text."""
    if not isinstance(text, str):
        raise InputError(f"{type(text).__qualname__} is no text", where=where, hint="give text")


def condition_type(kind: T.DataType) -> Type | None:
    """The type that a column has in conditions; None if conditions can't read it."""
    if isinstance(kind, T.StringType):
        return Type.VARCHAR
    if isinstance(kind, T.BooleanType):
        return Type.BOOLEAN
    if isinstance(kind, _TIMES):
        return Type.TIMESTAMP
    if isinstance(kind, T.LongType):
        return Type.BIGINT
    if isinstance(kind, _WHOLE):
        return Type.INT
    return Type.DOUBLE if isinstance(kind, _FRACTIONS) else None
