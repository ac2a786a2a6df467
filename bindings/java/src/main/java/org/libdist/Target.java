// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import org.libdist.internal.DistModule;

/**
 * The object behind a token: a function of the program and the data of its call. Subclasses override the one
 * method that libdist calls on them. What it throws is kept here and reported to libdist, and {@link #cause}
 * finds it again.
 */
abstract class Target {
    private static final int MOST_KEPT = 256; // as many as a strategy may have replicas

    private final List<Throwable> thrown = new ArrayList<>(0);

    void replica(long replica, int id, int numReplicas) throws Exception {
        throw unexpected();
    }

    long values(long replica, long args, long kwargs) throws Exception {
        throw unexpected();
    }

    long merge(long strategy, long args, long kwargs) throws Exception {
        throw unexpected();
    }

    long update(int replica, String device, long copy, long args, long kwargs) throws Exception {
        throw unexpected();
    }

    /** Returns an element; 0 ends the pass. */
    long source(long index) throws Exception {
        throw unexpected();
    }

    /** Returns an element; 0 ends the file. */
    long fileSource(long file, String name, long index) throws Exception {
        throw unexpected();
    }

    long dataset(int numPipelines, int pipeline, int numReplicas) throws Exception {
        throw unexpected();
    }

    long datasetReduce(long state, long batch) throws Exception {
        throw unexpected();
    }

    long value(int replica, int numReplicas) throws Exception {
        throw unexpected();
    }

    long initial() throws Exception {
        throw unexpected();
    }

    long method(String name, long cancel, long timeoutNanos, long args) throws Exception {
        throw unexpected();
    }

    long closure(long closure, long args) throws Exception {
        throw unexpected();
    }

    /** Returns a token of the state. */
    long createState(long replica) throws Exception {
        throw unexpected();
    }

    void destroyState(long state) throws Exception {
        throw unexpected();
    }

    void warmUp(long replica) throws Exception {
        throw unexpected();
    }

    /** Called when libdist no longer uses the object. */
    void released() throws Exception {}

    void step(long replica, long batch) throws Exception {
        throw unexpected();
    }

    void updateVariables(long variables, long n, long args) throws Exception {
        throw unexpected();
    }

    void partition(long spec, long out) throws Exception {
        throw unexpected();
    }

    void loop(long begin, long end) throws Exception {
        throw unexpected();
    }

    void reduce(long acc, long in, long count, DType dtype) throws Exception {
        throw unexpected();
    }

    void apply(long tensor, long first, long count, DType dtype, long gradient, long parameter, int numStates,
            long states) throws Exception {
        throw unexpected();
    }

    void reduceComponents(ReduceOp op, long components, long n, long out) throws Exception {
        throw unexpected();
    }

    void broadcastCopies(long value, long copies, long n) throws Exception {
        throw unexpected();
    }

    void gatherComponents(long components, long n, int axis, long out) throws Exception {
        throw unexpected();
    }

    void log(LogLevel level, String message) throws Exception {
        throw unexpected();
    }

    boolean execute(long function, long data) {
        throw unexpected();
    }

    private static IllegalStateException unexpected() {
        return new IllegalStateException("libdist called another kind of function than it was given");
    }

    /** Keeps an exception of a call. */
    void keep(Throwable t) {
        synchronized (thrown) {
            if (thrown.size() < MOST_KEPT) {
                thrown.add(t);
            }
        }
    }

    /** Throws what a function threw that returns no status to libdist. */
    final void check() {
        Throwable cause = null;
        synchronized (thrown) {
            for (Throwable t : thrown) {
                if (cause == null) {
                    cause = t;
                } else if (t != cause) {
                    cause.addSuppressed(t);
                }
            }
            thrown.clear();
        }
        if (cause != null) {
            throw Target.<RuntimeException>rethrow(cause);
        }
    }

    /** Reports an exception to libdist on this thread, for callers and peers. Returns the status. */
    static int tell(Throwable t) {
        if (t instanceof DistException) {
            DistException e = (DistException) t;
            int code = e.status().code();
            return e.told() ? DistModule.fail_as_told(code, Texts.words(e.marked()))
                            : DistModule.fail(code, text(t));
        }
        return DistModule.fail(Status.UNKNOWN.code(), text(t));
    }

    private static byte[] text(Throwable t) {
        String text;
        try {
            text = t instanceof DistException ? ((DistException) t).marked() : t.toString();
        } catch (Throwable bad) { // its own toString() throws
            text = t.getClass().getName();
        }
        return Texts.words(text == null ? t.getClass().getName() : text);
    }

    /**
     * Returns the exception behind a failed call: what the function threw that the report describes, with the
     * exceptions of other functions suppressed in it; otherwise the report.
     */
    final Throwable cause(DistException report) {
        synchronized (thrown) {
            Throwable cause = null;
            for (Throwable t : thrown) {
                if (rank(t, report) > (cause == null ? 0 : rank(cause, report))) {
                    cause = t;
                }
            }
            for (Throwable t : thrown) {
                if (cause != null && t != cause && rank(t, report) > 0 && !isTold(t)) {
                    cause.addSuppressed(t);
                }
            }
            thrown.clear();
            return cause == null ? report : cause;
        }
    }

    /** Returns what a function threw that a report to its peers describes; null if there is none. */
    final Throwable reason(String report) {
        synchronized (thrown) {
            for (Throwable t : thrown) {
                if (!isTold(t) && report.contains(Texts.of(text(t)))) {
                    return t;
                }
            }
        }
        return null;
    }

    /**
     * Returns how well an exception explains the report. 0 means not at all: the exception only passes on the
     * report or that of others.
     */
    private static int rank(Throwable t, DistException report) {
        boolean tellsOf = report.marked().contains(Texts.of(text(t)));
        if (isTold(t)) {
            return tellsOf && ((DistException) t).status() == report.status() ? 2 : 0;
        }
        return tellsOf ? 3 : 1;
    }

    static boolean isTold(Throwable t) {
        return t instanceof DistException && ((DistException) t).told();
    }

    /** Throws what the function threw that the report describes, if it threw anything. */
    final void rethrowOwn(DistException report) {
        Throwable cause = cause(report);
        if (cause != report) {
            throw Target.<RuntimeException>rethrow(cause);
        }
    }

    /**
     * Throws an exception of the program, which can be an Error. T is erased to Throwable, so nothing is
     * cast.
     */
    @SuppressWarnings("unchecked")
    static <T extends Throwable> T rethrow(Throwable thrown) throws T {
        throw(T) thrown;
    }
}
