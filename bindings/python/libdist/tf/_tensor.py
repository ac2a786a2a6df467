# SPDX-License-Identifier: Apache-2.0
"""tf.Tensor: a NumPy array that behaves like TensorFlow's, and what variables and mirrored values share with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._missing import missing_attribute


class TensorShape(tuple[int, ...]):
    """A shape: a tuple of sizes."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self)

    ndims = rank

    def as_list(self) -> list[int]:
        """Returns the sizes as a list."""
        return list(self)

    def num_elements(self) -> int:
        """Returns the number of elements."""
        return int(np.prod(self, dtype=np.int64))

    def is_fully_defined(self) -> bool:
        """Returns True: the shape of an array is known."""
        return True

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self))}{',' if len(self) == 1 else ''})"


def described(array: Any) -> str:
    """Returns the elements as TensorFlow's repr() prints them."""
    if not np.ndim(array):
        return str(np.asarray(array)[()])
    text = repr(np.asarray(array))
    return "\n" + text if "\n" in text else text


# ---- arithmetic ------------------------------------------------------------------------------------------------------

_FITS: dict[str, tuple[type, ...]] = {
    "f": (int, float),
    "V": (int, float),
    "c": (int, float, complex),
    "i": (int,),
    "u": (int,),
}


def calculate(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a NumPy ufunc with arrays and objects that hold a tensor. Python numbers get the dtype of the tensor.

    NumPy before version 2 would return float64 for a float32 scalar and a number.
    """
    for given in inputs:
        if isinstance(given, Holder) and given._is_divided():
            return given._calculate(ufunc, method, inputs, kwargs)
    arrays = [plain(given) for given in inputs]
    dtype = next((array.dtype for given, array in zip(inputs, arrays) if isinstance(given, (Tensor, Holder))), None)
    fitting = () if dtype is None else _FITS.get(dtype.kind, ())
    for i, given in enumerate(arrays):
        if isinstance(given, fitting) and not isinstance(given, (bool, np.generic)):
            arrays[i] = np.asarray(given, dtype)
    out = kwargs.get("out")
    if isinstance(out, tuple):
        # `v += 1` is v = v + 1, as in TensorFlow. Only assign_add() changes a variable.
        if any(isinstance(one, Holder) for one in out):
            del kwargs["out"]
        else:
            kwargs["out"] = tuple(plain(one) for one in out)
            getattr(ufunc, method)(*arrays, **kwargs)
            return out[0] if len(out) == 1 else out
    return tensor_of(getattr(ufunc, method)(*arrays, **kwargs))


def plain(given: Any) -> Any:
    """Returns a NumPy array for an object that holds a tensor; other objects unchanged."""
    if isinstance(given, Tensor):
        return given.view(np.ndarray)
    return plain(given._dense()) if isinstance(given, Holder) else given


def tensor_of(result: Any) -> Any:
    """Returns a tensor for an array or a scalar; other objects unchanged."""
    if isinstance(result, np.ndarray):
        return result if isinstance(result, Tensor) else result.view(Tensor)
    if isinstance(result, np.generic):
        return np.asarray(result).view(Tensor)
    return tuple(map(tensor_of, result)) if type(result) is tuple else result


class _Rebinding:
    """`t += x` returns a new tensor, as in TensorFlow: operators never change a tensor."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other

    def __ifloordiv__(self, other: Any) -> Any:
        return self // other

    def __imod__(self, other: Any) -> Any:
        return self % other

    def __ipow__(self, other: Any) -> Any:
        return self**other


class Tensor(_Rebinding, np.ndarray[Any, Any]):
    """A NumPy array with numpy(), which prints like a tensor of TensorFlow."""

    def numpy(self) -> Any:
        """Returns a NumPy array; for a scalar, a NumPy number."""
        array = self.view(np.ndarray)
        return array if array.ndim else array[()]

    def get_shape(self) -> TensorShape:
        """Returns the shape."""
        return TensorShape(super().shape)

    if not TYPE_CHECKING:

        @property
        def shape(self) -> TensorShape:
            """The shape, as a tuple of sizes."""
            return TensorShape(super().shape)

        @shape.setter
        def shape(self, sizes: Any) -> None:  # for NumPy's functions
            np.ndarray.shape.__set__(self, sizes)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return calculate(ufunc, method, inputs, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return tensor_of(super().__getitem__(plain(index)))

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype}, numpy={described(self)}>"

    def __str__(self) -> str:
        text = str(self.view(np.ndarray))
        start = "\n" if "\n" in text else ""
        return f"tf.Tensor({start}{text}, shape={self.shape}, dtype={self.dtype})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, "tf.Tensor", name)


class Holder(_Rebinding, np.lib.mixins.NDArrayOperatorsMixin):
    """An object that holds a tensor. NumPy's operators and functions work on the value that read_value() returns."""

    def __hash__(self) -> int:
        return id(self)  # because `==` compares elements

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return self.read_value().dtype

    def read_value(self) -> Any:
        """Returns the current value."""
        raise NotImplementedError

    def _dense(self) -> Any:
        """Returns the array with which operators compute."""
        return self.read_value()

    def _is_divided(self) -> bool:
        """Returns whether calculate() calls _calculate(); see SplitTensor."""
        return False

    def _calculate(self, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def numpy(self) -> Any:
        """Returns the value as a NumPy array; for a scalar, as a NumPy number."""
        value = plain(self.read_value())
        return value if np.ndim(value) else np.asarray(value)[()]

    @property
    def shape(self) -> TensorShape:
        """The shape of the tensor."""
        return TensorShape(self.read_value().shape)

    def get_shape(self) -> TensorShape:
        """Returns the shape of the tensor."""
        return self.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = np.asarray(plain(self))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return calculate(ufunc, method, inputs, kwargs)

    def __pow__(self, exponent: Any) -> Any:
        # Not numpy.power(): for exponents such as 2, `**` of an array rounds differently.
        return self._dense() ** exponent

    def __getitem__(self, index: Any) -> Any:
        return tensor_of(self._dense()[plain(index)])

    def __len__(self) -> int:
        return len(self._dense())

    def __float__(self) -> float:
        return float(self._dense())

    def __int__(self) -> int:
        return int(self._dense())

    def __index__(self) -> int:
        return int(self._dense().__index__())

    def __bool__(self) -> bool:
        return bool(self._dense())

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self)[()], spec) if spec else str(self)
