// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/** Memory for collectives: direct buffers in the machine's own byte order, filled with the given values. */
public final class DirectBuffers {
    private DirectBuffers() {}

    /** A buffer that holds {@code values}, position 0. */
    public static FloatBuffer of(float... values) {
        return bytes(values.length, Float.BYTES).asFloatBuffer().put(values).rewind();
    }

    /** A buffer that holds {@code values}, position 0. */
    public static DoubleBuffer of(double... values) {
        return bytes(values.length, Double.BYTES).asDoubleBuffer().put(values).rewind();
    }

    /** A buffer that holds {@code values}, position 0. */
    public static IntBuffer of(int... values) {
        return bytes(values.length, Integer.BYTES).asIntBuffer().put(values).rewind();
    }

    /** A buffer that holds {@code values}, position 0. */
    public static LongBuffer of(long... values) {
        return bytes(values.length, Long.BYTES).asLongBuffer().put(values).rewind();
    }

    private static ByteBuffer bytes(int length, int elementBytes) {
        return ByteBuffer.allocateDirect(Math.multiplyExact(length, elementBytes)).order(ByteOrder.nativeOrder());
    }
}
