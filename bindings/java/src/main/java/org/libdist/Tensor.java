// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.ShortBuffer;
import java.util.Arrays;
import java.util.Objects;

/**
 * A view of memory outside the heap: a dtype, a shape and optionally strides. It copies nothing and keeps its
 * memory alive, which can be your own direct buffer or belong to a value or variable. {@link Tensors} copies
 * tensors from and to heap arrays.
 *
 * <pre>{@code
 * FloatBuffer points = DirectBuffers.floats(200);
 * Tensor tensor = Tensor.of(points, 100, 2); // from the buffer's position; later changes of the buffer are visible
 * }</pre>
 */
public final class Tensor {
    private static final int HEADER = 4;
    private static final int MAX_DIMENSIONS = 16; // DIST_MAX_NDIM

    private final long address;
    private final Object memory; // whose lifetime is that of what lies at the address
    private final DType dtype;
    private final long[] shape;
    private final long[] strides; // null: row-major without gaps
    private final long size;
    private final long capacity; // elements from the address on
    private ByteBuffer bytes; // made when it is asked for

    Tensor(long address, long capacity, Object memory, DType dtype, long[] shape, long[] strides) {
        this.address = address;
        this.capacity = capacity;
        this.memory = memory;
        this.dtype = dtype;
        this.shape = shape;
        this.strides = strides;
        size = size(shape);
    }

    /** Returns a tensor of one dimension with all elements of a buffer between position and limit. */
    public static Tensor of(FloatBuffer data) {
        return of(data, data.remaining());
    }

    /** Returns a tensor of a buffer's elements from its position on, row-major. */
    public static Tensor of(FloatBuffer data, long... shape) {
        return over(DType.F32, data, data.order(), shape);
    }

    /** Same as {@link #of(FloatBuffer)}, for doubles. */
    public static Tensor of(DoubleBuffer data) {
        return of(data, data.remaining());
    }

    /** Same as {@link #of(FloatBuffer, long...)}, for doubles. */
    public static Tensor of(DoubleBuffer data, long... shape) {
        return over(DType.F64, data, data.order(), shape);
    }

    /** Same as {@link #of(FloatBuffer)}, for ints. */
    public static Tensor of(IntBuffer data) {
        return of(data, data.remaining());
    }

    /** Same as {@link #of(FloatBuffer, long...)}, for ints. */
    public static Tensor of(IntBuffer data, long... shape) {
        return over(DType.I32, data, data.order(), shape);
    }

    /** Same as {@link #of(FloatBuffer)}, for longs. */
    public static Tensor of(LongBuffer data) {
        return of(data, data.remaining());
    }

    /** Same as {@link #of(FloatBuffer, long...)}, for longs. */
    public static Tensor of(LongBuffer data, long... shape) {
        return over(DType.I64, data, data.order(), shape);
    }

    /**
     * Same as {@link #of(FloatBuffer, long...)}, for any dtype whose elements have the size of the buffer's.
     */
    public static Tensor of(DType dtype, Buffer data, long... shape) {
        if (dtype.sizeBytes() != Buffers.elementBytes(Objects.requireNonNull(data, "data"))) {
            throw new IllegalArgumentException("elements of " + dtype + " are not those of " + data);
        }
        return over(dtype, data, Buffers.order(data), shape);
    }

    /**
     * Same as {@link #of(FloatBuffer, long...)}, for any dtype: the shape counts elements, the buffer bytes.
     */
    public static Tensor of(DType dtype, ByteBuffer data, long... shape) {
        return over(dtype, data, dtype.sizeBytes() == 1 ? ByteOrder.nativeOrder() : data.order(), shape);
    }

    /** Returns a tensor of zeros in new memory. */
    public static Tensor zeros(DType dtype, long... shape) {
        long size = size(shape);
        if (size > Integer.MAX_VALUE / dtype.sizeBytes()) {
            throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has " + size + " elements of "
                    + dtype.sizeBytes() + " bytes, but a buffer has at most " + Integer.MAX_VALUE + " bytes");
        }
        return of(dtype, DirectBuffers.bytes((int) size * dtype.sizeBytes()), shape);
    }

    private static Tensor over(DType dtype, Buffer data, ByteOrder order, long[] shape) {
        Objects.requireNonNull(dtype, "dtype");
        Buffers.check(data, order, false);
        int unit = Buffers.elementBytes(data);
        long capacity = (long) data.remaining() * unit / dtype.sizeBytes();
        long size = size(shape);
        if (size > capacity) {
            throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has " + size
                    + " elements, the buffer from its position on " + capacity);
        }
        long address = Buffers.address(data) + (long) data.position() * unit;
        return new Tensor(address, capacity, data, dtype, shape.clone(), null);
    }

    /** Returns a view of the same memory with the given strides, in elements. */
    public Tensor strided(long... steps) {
        if (steps.length != shape.length) {
            throw new IllegalArgumentException(steps.length + " strides for " + shape.length + " dimensions");
        }
        long first = 0;
        long last = 0;
        for (int d = 0; d < shape.length && size > 0; d++) {
            long reach = Math.multiplyExact(shape[d] - 1, steps[d]);
            first = Math.addExact(first, Math.min(reach, 0));
            last = Math.addExact(last, Math.max(reach, 0));
        }
        if (first < 0 || (size > 0 && last >= capacity)) {
            throw new IllegalArgumentException("strides " + Arrays.toString(steps) + " reach from element "
                    + first + " to " + last + " of " + capacity);
        }
        return new Tensor(address, capacity, memory, dtype, shape, steps.clone());
    }

    /** Returns the same elements in another shape with the same number of elements. */
    public Tensor reshaped(long... newShape) {
        if (size(Objects.requireNonNull(newShape, "newShape")) != size || strides != null) {
            throw new IllegalArgumentException(this + " cannot have the shape " + Arrays.toString(newShape));
        }
        return new Tensor(address, capacity, memory, dtype, newShape.clone(), null);
    }

    /** Returns a view of the rows {@code begin} .. {@code end - 1} of the first dimension. */
    public Tensor rows(long begin, long end) {
        if (shape.length == 0 || begin < 0 || end < begin || end > shape[0]) {
            throw new IndexOutOfBoundsException("rows " + begin + " to " + end + " of " + this);
        }
        long[] part = shape.clone();
        part[0] = end - begin;
        long row = strides != null ? strides[0] : shape[0] == 0 ? 0 : size / shape[0];
        long skipped = begin * row;
        return new Tensor(
                address + skipped * dtype.sizeBytes(), capacity - skipped, memory, dtype, part, strides);
    }

    /** Returns the type of the elements. */
    public DType dtype() {
        return dtype;
    }

    /** Returns the sizes of the dimensions; empty for a scalar. */
    public long[] shape() {
        return shape.clone();
    }

    /** Returns the size of one dimension. */
    public long shape(int dimension) {
        return shape[dimension];
    }

    /** Returns the number of dimensions. */
    public int numDimensions() {
        return shape.length;
    }

    /** Returns the number of elements. */
    public long size() {
        return size;
    }

    long sizeBytes() {
        return size * dtype.sizeBytes();
    }

    /** Returns the strides, in elements; null if the tensor is row-major without gaps. */
    public long[] strides() {
        return strides == null ? null : strides.clone();
    }

    /** Returns the memory itself, in the byte order of the machine; only without strides, and up to 2 GiB. */
    public ByteBuffer bytes() {
        if (strides != null) {
            throw new IllegalStateException("strided elements are no buffer: copy them, see Tensors");
        }
        if (bytes == null) {
            bytes = Buffers.at(address, Math.multiplyExact(size, dtype.sizeBytes()), memory);
        }
        return bytes.duplicate().order(ByteOrder.nativeOrder());
    }

    /** Same as {@link #bytes()}, for an F32 tensor. */
    public FloatBuffer floats() {
        return expect(DType.F32).asFloatBuffer();
    }

    /** Same as {@link #bytes()}, for an F64 tensor. */
    public DoubleBuffer doubles() {
        return expect(DType.F64).asDoubleBuffer();
    }

    /** Same as {@link #bytes()}, for an I32 or U32 tensor. */
    public IntBuffer ints() {
        return (dtype == DType.U32 ? bytes() : expect(DType.I32)).asIntBuffer();
    }

    /** Same as {@link #bytes()}, for an I64 or U64 tensor. */
    public LongBuffer longs() {
        return (dtype == DType.U64 ? bytes() : expect(DType.I64)).asLongBuffer();
    }

    /** Same as {@link #bytes()}, for a tensor with elements of two bytes. */
    public ShortBuffer shorts() {
        return (dtype.sizeBytes() == 2 ? bytes() : expect(DType.I16)).asShortBuffer();
    }

    /** Returns all memory that the strides reach. */
    ByteBuffer reachable() {
        return Buffers.at(address, Math.multiplyExact(capacity, dtype.sizeBytes()), memory);
    }

    private ByteBuffer expect(DType wanted) {
        if (dtype != wanted) {
            throw new IllegalStateException("the elements are " + dtype + ", not " + wanted);
        }
        return bytes();
    }

    /** Returns the only element, as a double. */
    public double item() {
        if (size != 1) {
            throw new IllegalStateException(this + " is not one element");
        }
        return Tensors.toDoubles(this)[0];
    }

    /** Returns a text such as "f32[2, 3]". */
    @Override
    public String toString() {
        return dtype + Arrays.toString(shape);
    }

    private static long size(long[] shape) {
        Objects.requireNonNull(shape, "shape");
        if (shape.length > MAX_DIMENSIONS) {
            throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has " + shape.length
                    + " dimensions, but a tensor has at most " + MAX_DIMENSIONS);
        }
        long size = 1;
        for (long dimension : shape) {
            if (dimension < 0) {
                throw new IllegalArgumentException("a negative size in the shape " + Arrays.toString(shape));
            }
            if (dimension != 0 && size > Long.MAX_VALUE / dimension) {
                throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has too many elements");
            }
            size *= dimension;
        }
        return size;
    }

    void checkWritable() {
        if (memory instanceof Buffer && ((Buffer) memory).isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
    }

    /** As dist.i packs tensors. */
    long[] numbers() {
        return numbers(new Tensor[] {this});
    }

    static long[] numbers(Tensor[] tensors) {
        int length = 0;
        for (Tensor tensor : tensors) {
            length += HEADER + tensor.shape.length * (tensor.strides == null ? 1 : 2);
        }
        long[] numbers = new long[length];
        int at = 0;
        for (Tensor tensor : tensors) {
            numbers[at] = tensor.address;
            numbers[at + 1] = tensor.dtype.code;
            numbers[at + 2] = tensor.shape.length;
            numbers[at + 3] = tensor.strides == null ? 0 : 1;
            at += HEADER;
            System.arraycopy(tensor.shape, 0, numbers, at, tensor.shape.length);
            at += tensor.shape.length;
            if (tensor.strides != null) {
                System.arraycopy(tensor.strides, 0, numbers, at, tensor.shape.length);
                at += tensor.shape.length;
            }
        }
        return numbers;
    }

    /** Returns an array for one tensor that native code describes. */
    static long[] room() {
        return new long[HEADER + 2 * 16];
    }

    /** Returns a tensor that native code has described; {@code memory} keeps its memory alive. */
    static Tensor described(long[] numbers, Object memory) {
        int ndim = (int) numbers[2];
        long[] shape = Arrays.copyOfRange(numbers, HEADER, HEADER + ndim);
        long[] strides =
                numbers[3] == 0 ? null : Arrays.copyOfRange(numbers, HEADER + ndim, HEADER + 2 * ndim);
        if (strides != null && isRowMajor(shape, strides)) {
            strides = null;
        }
        long reach = 1;
        for (int d = 0; strides != null && d < ndim; d++) {
            reach += Math.max(shape[d] - 1, 0) * Math.max(strides[d], 0);
        }
        long capacity = strides == null ? size(shape) : reach;
        return new Tensor(numbers[0], capacity, memory, DType.of((int) numbers[1]), shape, strides);
    }

    private static boolean isRowMajor(long[] shape, long[] strides) {
        long step = 1;
        for (int d = shape.length - 1; d >= 0; d--) {
            if (shape[d] != 1 && strides[d] != step) {
                return false;
            }
            step *= shape[d];
        }
        return true;
    }
}
