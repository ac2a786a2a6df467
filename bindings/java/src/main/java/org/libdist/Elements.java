// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.libdist.internal.DistModule;

/**
 * Memory of libdist that your function may use during one call: elements in row-major order. After the call,
 * every method throws FAILED_PRECONDITION. For speed, read and write whole arrays.
 */
public final class Elements {
    private final DType dtype;
    private final long[] shape;
    private final int size;
    private ByteBuffer bytes; // null after the call

    private Elements(DType dtype, long[] shape, int size, ByteBuffer bytes) {
        this.dtype = dtype;
        this.shape = shape;
        this.size = size;
        this.bytes = bytes;
    }

    /** Returns a view of {@code count} elements at an address. */
    static Elements at(long address, long count, DType dtype) {
        int size = Math.toIntExact(count);
        ByteBuffer bytes = DistModule.buffer_at(address, (long) size * dtype.sizeBytes());
        return new Elements(dtype, new long[] {size}, size, bytes.order(ByteOrder.nativeOrder()));
    }

    /** Returns a view of tensor {@code index} of an array at an address. */
    static Elements tensorAt(long tensors, long index) {
        long[] numbers = Tensor.room();
        DistModule.tensor_at(tensors, index, numbers);
        Tensor tensor = Tensor.described(numbers, null);
        int size = Math.toIntExact(tensor.size());
        if (tensor.strides() != null) { // only what is read has gaps
            return new Elements(tensor.dtype(), tensor.shape(), size, Tensors.compact(tensor));
        }
        ByteBuffer bytes = DistModule.buffer_at(numbers[0], (long) size * tensor.dtype().sizeBytes());
        return new Elements(tensor.dtype(), tensor.shape(), size, bytes.order(ByteOrder.nativeOrder()));
    }

    /** Invalidates this object after the call. */
    void end() {
        bytes = null;
    }

    /** Returns the type of the elements. */
    public DType dtype() {
        return dtype;
    }

    /** Returns the sizes of the dimensions. */
    public long[] shape() {
        return shape.clone();
    }

    /** Returns the number of elements. */
    public int size() {
        return size;
    }

    /** Returns element i as a double; elements of type U64 and I64 are rounded. */
    public double get(int i) {
        return read(dtype, lent(), i);
    }

    /** Sets element i, rounded to its type; F16 and BF16 round to the nearest, ties to even. */
    public void set(int i, double value) {
        write(dtype, lent(), i, value);
    }

    /** Copies all F32 elements to an array. */
    public float[] toFloats() {
        float[] values = new float[expect(DType.F32)];
        lent().asFloatBuffer().get(values);
        return values;
    }

    /** Copies all F64 elements to an array. */
    public double[] toDoubles() {
        double[] values = new double[expect(DType.F64)];
        lent().asDoubleBuffer().get(values);
        return values;
    }

    /** Copies the bytes of all elements to an array. */
    public byte[] toBytes() {
        ByteBuffer from = lent().duplicate();
        byte[] values = new byte[from.remaining()];
        from.get(values);
        return values;
    }

    /** Sets all F32 elements. */
    public void put(float[] values) {
        lent().asFloatBuffer().put(values, 0, expect(DType.F32));
    }

    /** Sets all F64 elements. */
    public void put(double[] values) {
        lent().asDoubleBuffer().put(values, 0, expect(DType.F64));
    }

    /** Sets the bytes of all elements. */
    public void put(byte[] values) {
        ByteBuffer to = lent().duplicate();
        to.put(values, 0, to.remaining());
    }

    private ByteBuffer lent() {
        ByteBuffer memory = bytes;
        if (memory == null) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "the elements were lent for a call that is over: copy what you keep");
        }
        return memory;
    }

    private int expect(DType wanted) {
        if (dtype != wanted) {
            throw new IllegalStateException("the elements are " + dtype + ", not " + wanted);
        }
        return size;
    }

    // @every dtype but COMPLEX64: it is no double
    static double read(DType dtype, ByteBuffer from, int i) {
        switch (dtype) {
            case F16:
                return Half.toFloat(from.getShort(2 * i));
            case BF16:
                return Float.intBitsToFloat(from.getShort(2 * i) << 16);
            case F32:
                return from.getFloat(4 * i);
            case F64:
                return from.getDouble(8 * i);
            case I8:
                return from.get(i);
            case U8:
                return from.get(i) & 0xff;
            case I16:
                return from.getShort(2 * i);
            case U16:
                return from.getShort(2 * i) & 0xffff;
            case I32:
                return from.getInt(4 * i);
            case U32:
                return from.getInt(4 * i) & 0xffffffffL;
            case I64:
                return from.getLong(8 * i);
            case U64:
                return Half.unsigned(from.getLong(8 * i));
            case BOOL:
                return from.get(i) == 0 ? 0 : 1;
            default:
                throw new IllegalStateException(dtype + " elements are no doubles: see toBytes()");
        }
    }

    // @every dtype but COMPLEX64: it is no double
    private static void write(DType dtype, ByteBuffer to, int i, double value) {
        switch (dtype) {
            case F16:
                to.putShort(2 * i, Half.fromDouble(value));
                break;
            case BF16:
                to.putShort(2 * i, Half.bfloat((float) value));
                break;
            case F32:
                to.putFloat(4 * i, (float) value);
                break;
            case F64:
                to.putDouble(8 * i, value);
                break;
            case I8:
            case U8:
                to.put(i, (byte) (long) value);
                break;
            case I16:
            case U16:
                to.putShort(2 * i, (short) (long) value);
                break;
            case I32:
            case U32:
                to.putInt(4 * i, (int) (long) value);
                break;
            case I64:
            case U64:
                to.putLong(8 * i, (long) value);
                break;
            case BOOL:
                to.put(i, (byte) (value != 0 ? 1 : 0));
                break;
            default:
                throw new IllegalStateException(dtype + " elements are no doubles: see put(byte[])");
        }
    }
}
