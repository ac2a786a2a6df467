// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.charset.StandardCharsets;

/**
 * A failure that libdist reports, in words and as fields. {@link #getMessage} has the hint too. Where another
 * replica's function threw {@link #getCause} is what it threw; where an interrupt ended the run, an
 * InterruptedException.
 */
public final class DistException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Status status;
    private final int worker;
    private final int replica;
    private final int logicalDevice;
    private final Collective collective;
    private final int group;
    private final long sequence;
    private final String tag;
    private final String expected;
    private final String received;
    private final String hint;
    private final String coreMessage;
    private final boolean told;

    /** Made by native code, of the record of dist_swig_error() in dist.i. */
    DistException(byte[] record) {
        this(new String(record, StandardCharsets.UTF_8).split("\0", -1));
    }

    private DistException(String[] field) {
        super(withHint(Words.of(field[6]), Words.of(field[10])));
        coreMessage = field[6];
        status = Status.of(Integer.parseInt(field[0]));
        worker = Integer.parseInt(field[1]);
        replica = Integer.parseInt(field[2]);
        collective = Collective.of(Integer.parseInt(field[3]));
        group = Integer.parseInt(field[4]);
        sequence = Long.parseLong(field[5]);
        tag = field[7];
        expected = field[8];
        received = field[9];
        hint = Words.of(field[10]);
        logicalDevice = Integer.parseInt(field[11]);
        told = true;
        if (status == Status.ABORTED) {
            Throwable first = Replica.reasonHere(coreMessage);
            if (first != null) {
                initCause(first);
            }
        }
    }

    private static String withHint(String message, String hint) {
        if (hint.isEmpty() || message.contains(hint)) {
            return message;
        }
        return message + (message.endsWith(".") ? " Hint: " : ". Hint: ") + hint;
    }

    DistException(Status status, String message) {
        this(status, message, null);
    }

    /**
     * For functions of yours that fail with a status: a run, merge or update whose function throws it ends
     * with that status and message.
     *
     * @param cause may be null
     */
    public DistException(Status status, String message, Throwable cause) {
        this(status, message, message, cause);
    }

    /** As libdist's core would have refused it. */
    static DistException inWordsOfC(Status status, String message) {
        return new DistException(status, Words.of(message), message, null);
    }

    private DistException(Status status, String message, String coreMessage, Throwable cause) {
        super(message);
        if (cause != null) {
            initCause(cause);
        }
        this.status = status;
        worker = 0;
        replica = -1;
        logicalDevice = -1;
        collective = Collective.NONE;
        group = 0;
        sequence = 0;
        tag = "";
        expected = "";
        received = "";
        hint = "";
        this.coreMessage = coreMessage;
        told = false;
    }

    /**
     * The message in the words of libdist's C headers, without the hint. It is the same in every language, for
     * reports to the project. Of an exception that a program made itself, this is its message.
     */
    public String coreMessage() {
        return coreMessage;
    }

    /** Whether libdist's core said it, not this package. */
    boolean told() {
        return told;
    }

    /** What kind of failure it is. */
    public Status status() {
        return status;
    }

    /** The culprit's process; 0 in a strategy of one process. */
    public int worker() {
        return worker;
    }

    /** The culprit's id; -1: no replica is to blame. */
    public int replica() {
        return replica;
    }

    /** Which logical device of the culprit's; -1: the replica as a whole. */
    public int logicalDevice() {
        return logicalDevice;
    }

    /** Where it was noticed. */
    public Collective collective() {
        return collective;
    }

    /** Which group of replicas met; 0: all. */
    public int group() {
        return group;
    }

    /** The collective's number in this run, from 1; 0: outside a collective. */
    public long sequence() {
        return sequence;
    }

    /** The collective's tag; "" where it has none. */
    public String tag() {
        return tag;
    }

    /** What the majority, or the lowest id, asked for; maybe "". */
    public String expected() {
        return expected;
    }

    /** What the culprit asked for, or that it left or did not come; maybe "". */
    public String received() {
        return received;
    }

    /** What to try; maybe "". */
    public String hint() {
        return hint;
    }

    @Override
    public String toString() {
        return getClass().getName() + ": " + status + ": " + getMessage();
    }
}
