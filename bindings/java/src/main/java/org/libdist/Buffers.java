// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.ShortBuffer;
import org.libdist.internal.DistModule;

/** Passes direct buffers to native code, and creates buffers over native memory. */
final class Buffers {
    private Buffers() {}

    /** Throws unless a buffer is direct, in the machine's byte order and, if it will be written, writable. */
    static void check(Buffer data, ByteOrder order, boolean written) {
        if (!data.isDirect()) {
            throw new IllegalArgumentException("a heap buffer: use a direct one, as DirectBuffers makes");
        }
        if (order != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException("the buffer is " + order
                    + ": call order(ByteOrder.nativeOrder()) before making its view");
        }
        if (written && data.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
    }

    static int elementBytes(Buffer data) {
        if (data instanceof ByteBuffer) {
            return Byte.BYTES;
        }
        if (data instanceof ShortBuffer || data instanceof CharBuffer) {
            return Short.BYTES;
        }
        return data instanceof FloatBuffer || data instanceof IntBuffer ? Integer.BYTES : Long.BYTES;
    }

    static ByteOrder order(Buffer data) {
        if (data instanceof FloatBuffer) {
            return ((FloatBuffer) data).order();
        }
        if (data instanceof DoubleBuffer) {
            return ((DoubleBuffer) data).order();
        }
        if (data instanceof IntBuffer) {
            return ((IntBuffer) data).order();
        }
        if (data instanceof LongBuffer) {
            return ((LongBuffer) data).order();
        }
        if (data instanceof ShortBuffer) {
            return ((ShortBuffer) data).order();
        }
        return data instanceof CharBuffer ? ((CharBuffer) data).order() : ((ByteBuffer) data).order();
    }

    /** Returns the address of element 0, whatever the position is. */
    static long address(Buffer data) {
        return DistModule.buffer_address(data);
    }

    /**
     * Returns a buffer over memory that {@code memory} keeps alive as long as the buffer or a view of it is
     * reachable.
     */
    static ByteBuffer at(long address, long sizeBytes, Object memory) {
        ByteBuffer buffer = DistModule.buffer_at(address, Math.toIntExact(sizeBytes));
        Native.CLEANER.register(buffer, () -> Reference.reachabilityFence(memory));
        return buffer.order(ByteOrder.nativeOrder());
    }
}
