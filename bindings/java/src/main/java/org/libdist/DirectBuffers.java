// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/** Creates memory that libdist uses in place: direct buffers in the byte order of the machine. */
public final class DirectBuffers {
    private DirectBuffers() {}

    /** Returns a buffer that holds {@code values}, at position 0. */
    public static FloatBuffer of(float... values) {
        return floats(values.length).put(values).rewind();
    }

    /** Returns a buffer that holds {@code values}, at position 0. */
    public static DoubleBuffer of(double... values) {
        return doubles(values.length).put(values).rewind();
    }

    /** Returns a buffer that holds {@code values}, at position 0. */
    public static IntBuffer of(int... values) {
        return ints(values.length).put(values).rewind();
    }

    /** Returns a buffer that holds {@code values}, at position 0. */
    public static LongBuffer of(long... values) {
        return longs(values.length).put(values).rewind();
    }

    /** Returns a buffer of {@code length} zeros. */
    public static FloatBuffer floats(int length) {
        return bytes(Math.multiplyExact(length, Float.BYTES)).asFloatBuffer();
    }

    /** Returns a buffer of {@code length} zeros. */
    public static DoubleBuffer doubles(int length) {
        return bytes(Math.multiplyExact(length, Double.BYTES)).asDoubleBuffer();
    }

    /** Returns a buffer of {@code length} zeros. */
    public static IntBuffer ints(int length) {
        return bytes(Math.multiplyExact(length, Integer.BYTES)).asIntBuffer();
    }

    /** Returns a buffer of {@code length} zeros. */
    public static LongBuffer longs(int length) {
        return bytes(Math.multiplyExact(length, Long.BYTES)).asLongBuffer();
    }

    /** Returns a buffer of {@code length} zeros. */
    public static ByteBuffer bytes(int length) {
        return ByteBuffer.allocateDirect(length).order(ByteOrder.nativeOrder());
    }
}
