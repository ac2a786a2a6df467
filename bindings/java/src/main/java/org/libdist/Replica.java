// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.Buffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import org.libdist.internal.DistModuleConstants;

/**
 * One copy of the replica function: its id, and its side of every collective. Valid inside the function that
 * received it; afterwards its collectives throw FAILED_PRECONDITION.
 *
 * <p>Buffers are direct and in the machine's byte order ({@link DirectBuffers}), and are used where they lie,
 * without a copy, from position to limit; neither changes.
 */
public final class Replica {
    private final org.libdist.internal.Replica internal;
    private final int id;
    private final int numReplicas;
    private volatile boolean ended;

    Replica(org.libdist.internal.Replica internal, int id, int numReplicas) {
        this.internal = internal;
        this.id = id;
        this.numReplicas = numReplicas;
    }

    /** This replica's id in 0 .. numReplicas()-1, its rank in every collective. */
    public int id() {
        return id;
    }

    /** How many replicas are in sync. */
    public int numReplicas() {
        return numReplicas;
    }

    /**
     * Reduces {@code data} over all replicas, in place: afterwards every replica holds op over all of them.
     * Results fold from left to right by replica id: the same bits on every replica and in every run.
     */
    public void allReduce(ReduceOp op, FloatBuffer data) {
        allReduce(op, data, CollectiveOptions.NONE);
    }

    /** As {@link #allReduce(ReduceOp, FloatBuffer)}, with options. */
    public void allReduce(ReduceOp op, FloatBuffer data, CollectiveOptions options) {
        allReduce(op, DistModuleConstants.DIST_F32, checked(data, data.order()), options);
    }

    /** As {@link #allReduce(ReduceOp, FloatBuffer)}, of doubles. */
    public void allReduce(ReduceOp op, DoubleBuffer data) {
        allReduce(op, data, CollectiveOptions.NONE);
    }

    /** As {@link #allReduce(ReduceOp, FloatBuffer)}, of doubles and with options. */
    public void allReduce(ReduceOp op, DoubleBuffer data, CollectiveOptions options) {
        allReduce(op, DistModuleConstants.DIST_F64, checked(data, data.order()), options);
    }

    /** As {@link #allReduce(ReduceOp, FloatBuffer)}, of ints, which wrap and have no MEAN. */
    public void allReduce(ReduceOp op, IntBuffer data) {
        allReduce(op, data, CollectiveOptions.NONE);
    }

    /** As {@link #allReduce(ReduceOp, IntBuffer)}, with options. */
    public void allReduce(ReduceOp op, IntBuffer data, CollectiveOptions options) {
        allReduce(op, DistModuleConstants.DIST_I32, checked(data, data.order()), options);
    }

    /** As {@link #allReduce(ReduceOp, IntBuffer)}, of longs. */
    public void allReduce(ReduceOp op, LongBuffer data) {
        allReduce(op, data, CollectiveOptions.NONE);
    }

    /** As {@link #allReduce(ReduceOp, IntBuffer)}, of longs and with options. */
    public void allReduce(ReduceOp op, LongBuffer data, CollectiveOptions options) {
        allReduce(op, DistModuleConstants.DIST_I64, checked(data, data.order()), options);
    }

    /** Gives every replica the root's data. */
    public void broadcast(int root, FloatBuffer data, CollectiveOptions options) {
        broadcast(root, DistModuleConstants.DIST_F32, checked(data, data.order()), options);
    }

    /** As {@link #broadcast(int, FloatBuffer, CollectiveOptions)}, of doubles. */
    public void broadcast(int root, DoubleBuffer data, CollectiveOptions options) {
        broadcast(root, DistModuleConstants.DIST_F64, checked(data, data.order()), options);
    }

    /** As {@link #broadcast(int, FloatBuffer, CollectiveOptions)}, of ints. */
    public void broadcast(int root, IntBuffer data, CollectiveOptions options) {
        broadcast(root, DistModuleConstants.DIST_I32, checked(data, data.order()), options);
    }

    /** As {@link #broadcast(int, FloatBuffer, CollectiveOptions)}, of longs. */
    public void broadcast(int root, LongBuffer data, CollectiveOptions options) {
        broadcast(root, DistModuleConstants.DIST_I64, checked(data, data.order()), options);
    }

    /** Returns when every replica has come. What each wrote before, all can read after. */
    public void barrier() {
        barrier(CollectiveOptions.NONE);
    }

    /** As {@link #barrier()}, with options. */
    public void barrier(CollectiveOptions options) {
        active().barrier(options.tag, options.timeoutNanos);
    }

    /** The replica function is over: the native replica may go at any time. */
    void end() {
        ended = true;
    }

    private void allReduce(ReduceOp op, int dtype, Buffer data, CollectiveOptions options) {
        active().all_reduce(op.code, dtype, data, options.tag, options.timeoutNanos);
    }

    private void broadcast(int root, int dtype, Buffer data, CollectiveOptions options) {
        active().broadcast(root, dtype, data, options.tag, options.timeoutNanos);
    }

    private org.libdist.internal.Replica active() {
        if (ended) {
            throw new DistException(
                    Status.FAILED_PRECONDITION, "the replica's run has ended: use it only inside its function");
        }
        return internal;
    }

    /** Native code sees a buffer's whole memory and no byte order: the part in use, if it can be used. */
    private static Buffer checked(Buffer data, ByteOrder order) {
        if (!data.isDirect()) {
            throw new IllegalArgumentException("a heap buffer: use a direct one, as DirectBuffers makes");
        }
        if (order != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException(
                    "the buffer is " + order + ": call order(ByteOrder.nativeOrder()) before making its view");
        }
        if (data.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        return data.slice();
    }
}
