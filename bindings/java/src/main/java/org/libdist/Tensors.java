// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Copies between tensors and heap arrays. */
public final class Tensors {
    private Tensors() {}

    /** Returns a row-major copy of an array. Without a shape, it has one dimension. */
    public static Tensor copyOf(float[] values, long... shape) {
        Tensor copy = like(DType.F32, values.length, shape);
        copy.floats().put(values);
        return copy;
    }

    /** Same as {@link #copyOf(float[], long...)}, for doubles. */
    public static Tensor copyOf(double[] values, long... shape) {
        Tensor copy = like(DType.F64, values.length, shape);
        copy.doubles().put(values);
        return copy;
    }

    /** Same as {@link #copyOf(float[], long...)}, for ints. */
    public static Tensor copyOf(int[] values, long... shape) {
        Tensor copy = like(DType.I32, values.length, shape);
        copy.ints().put(values);
        return copy;
    }

    /** Same as {@link #copyOf(float[], long...)}, for longs. */
    public static Tensor copyOf(long[] values, long... shape) {
        Tensor copy = like(DType.I64, values.length, shape);
        copy.longs().put(values);
        return copy;
    }

    /**
     * Same as {@link #copyOf(float[], long...)}, for the bytes of elements in the order of the machine. A
     * shape is required.
     */
    public static Tensor copyOf(DType dtype, byte[] bytes, long... shape) {
        Tensor copy = Tensor.zeros(dtype, shape);
        if (bytes.length != copy.size() * dtype.sizeBytes()) {
            throw new IllegalArgumentException(bytes.length + " bytes for " + copy);
        }
        copy.bytes().put(bytes);
        return copy;
    }

    /** Returns a tensor of one float without dimensions. */
    public static Tensor scalar(float value) {
        Tensor scalar = Tensor.zeros(DType.F32);
        scalar.floats().put(0, value);
        return scalar;
    }

    /** Returns a tensor of one double without dimensions. */
    public static Tensor scalar(double value) {
        Tensor scalar = Tensor.zeros(DType.F64);
        scalar.doubles().put(0, value);
        return scalar;
    }

    /** Returns a tensor of one int without dimensions. */
    public static Tensor scalar(int value) {
        Tensor scalar = Tensor.zeros(DType.I32);
        scalar.ints().put(0, value);
        return scalar;
    }

    /** Returns a tensor of one long without dimensions. */
    public static Tensor scalar(long value) {
        Tensor scalar = Tensor.zeros(DType.I64);
        scalar.longs().put(0, value);
        return scalar;
    }

    /** Returns the elements of an F32 tensor, row-major. */
    public static float[] toFloats(Tensor tensor) {
        float[] values = new float[count(tensor, DType.F32)];
        compact(tensor).asFloatBuffer().get(values);
        return values;
    }

    /** Returns the elements of an I32 or U32 tensor, row-major. */
    public static int[] toInts(Tensor tensor) {
        int[] values = new int[count(tensor, tensor.dtype() == DType.U32 ? DType.U32 : DType.I32)];
        compact(tensor).asIntBuffer().get(values);
        return values;
    }

    /** Returns the elements of an I64 or U64 tensor, row-major. */
    public static long[] toLongs(Tensor tensor) {
        long[] values = new long[count(tensor, tensor.dtype() == DType.U64 ? DType.U64 : DType.I64)];
        compact(tensor).asLongBuffer().get(values);
        return values;
    }

    /** Returns the bytes of all elements, row-major, in the byte order of the machine. */
    public static byte[] toBytes(Tensor tensor) {
        byte[] values = new byte[Math.toIntExact(tensor.size() * tensor.dtype().sizeBytes())];
        compact(tensor).get(values);
        return values;
    }

    /**
     * Returns the elements of any tensor except a complex one as doubles, row-major. BOOL elements become 0
     * and 1.
     */
    public static double[] toDoubles(Tensor tensor) {
        if (tensor.dtype() == DType.COMPLEX64) {
            throw new IllegalArgumentException("complex64 elements are no doubles: see toBytes()");
        }
        ByteBuffer bytes = compact(tensor);
        double[] values = new double[Math.toIntExact(tensor.size())];
        for (int i = 0; i < values.length; i++) {
            values[i] = Elements.read(tensor.dtype(), bytes, i);
        }
        return values;
    }

    private static Tensor like(DType dtype, int length, long[] shape) {
        Tensor tensor = Tensor.zeros(dtype, shape.length == 0 ? new long[] {length} : shape);
        if (tensor.size() != length) {
            throw new IllegalArgumentException(length + " values for " + tensor);
        }
        return tensor;
    }

    private static int count(Tensor tensor, DType wanted) {
        if (tensor.dtype() != wanted) {
            throw new IllegalArgumentException("the elements are " + tensor.dtype() + ", not " + wanted);
        }
        return Math.toIntExact(tensor.size());
    }

    /** Returns the elements without gaps: the memory itself, or a copy. */
    static ByteBuffer compact(Tensor tensor) {
        long[] strides = tensor.strides();
        if (strides == null) {
            return tensor.bytes();
        }
        int unit = tensor.dtype().sizeBytes();
        ByteBuffer all = tensor.reachable();
        ByteBuffer copy =
                ByteBuffer.allocate(Math.toIntExact(tensor.size() * unit)).order(ByteOrder.nativeOrder());
        long[] index = new long[tensor.numDimensions()];
        for (long i = 0; i < tensor.size(); i++) {
            long at = 0;
            for (int d = 0; d < index.length; d++) {
                at += index[d] * strides[d];
            }
            for (int b = 0; b < unit; b++) {
                copy.put(all.get(Math.toIntExact(at * unit + b)));
            }
            for (int d = index.length - 1; d >= 0 && ++index[d] == tensor.shape(d); d--) {
                index[d] = 0;
            }
        }
        return copy.flip().order(ByteOrder.nativeOrder());
    }
}
