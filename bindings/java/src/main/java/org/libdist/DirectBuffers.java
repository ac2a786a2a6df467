// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/** Memory that libdist uses where it lies: direct buffers in the machine's own byte order. */
public final class DirectBuffers {
    private DirectBuffers() {}

    /** A buffer that holds {@code values}, position 0. */
    public static FloatBuffer of(float... values) {
        return floats(values.length).put(values).rewind();
    }

    /** A buffer that holds {@code values}, position 0. */
    public static DoubleBuffer of(double... values) {
        return doubles(values.length).put(values).rewind();
    }

    /** A buffer that holds {@code values}, position 0. */
    public static IntBuffer of(int... values) {
        return ints(values.length).put(values).rewind();
    }

    /** A buffer that holds {@code values}, position 0. */
    public static LongBuffer of(long... values) {
        return longs(values.length).put(values).rewind();
    }

    /** So many zeros. */
    public static FloatBuffer floats(int length) {
        return bytes(Math.multiplyExact(length, Float.BYTES)).asFloatBuffer();
    }

    /** So many zeros. */
    public static DoubleBuffer doubles(int length) {
        return bytes(Math.multiplyExact(length, Double.BYTES)).asDoubleBuffer();
    }

    /** So many zeros. */
    public static IntBuffer ints(int length) {
        return bytes(Math.multiplyExact(length, Integer.BYTES)).asIntBuffer();
    }

    /** So many zeros. */
    public static LongBuffer longs(int length) {
        return bytes(Math.multiplyExact(length, Long.BYTES)).asLongBuffer();
    }

    /** So many zeros. */
    public static ByteBuffer bytes(int length) {
        return ByteBuffer.allocateDirect(length).order(ByteOrder.nativeOrder());
    }
}
