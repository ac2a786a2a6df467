// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.libdist.internal.DistModule;

/**
 * A failure that libdist reports, as a message and as fields. {@link #getMessage} includes the hint. If
 * another replica's function threw, {@link #getCause} returns that exception; if an interrupt ended the run,
 * it returns an InterruptedException.
 */
public final class DistException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private static final Pattern MARKS = Pattern.compile("[\u000E\u000F]");

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
    private final String function;
    private final String parameter;
    /** As libdist says it to C, with the marks of dist_last_error_marked(). */
    private final String marked;
    private final boolean told;

    /** Made by native code, of the record of dist_swig_error() in dist.i. */
    DistException(byte[] record) {
        this(new String(record, StandardCharsets.UTF_8).split("\0", -1));
    }

    private DistException(String[] field) {
        super(withHint(field[6], field[10]));
        marked = field[14];
        status = Status.of(Integer.parseInt(field[0]));
        worker = Integer.parseInt(field[1]);
        replica = Integer.parseInt(field[2]);
        collective = Collective.of(Integer.parseInt(field[3]));
        group = Integer.parseInt(field[4]);
        sequence = Long.parseLong(field[5]);
        tag = field[7];
        expected = field[8];
        received = field[9];
        hint = field[10];
        logicalDevice = Integer.parseInt(field[11]);
        function = field[12];
        parameter = field[13];
        told = true;
        if (status == Status.ABORTED) {
            Throwable first = Replica.reasonHere(marked);
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
     * Creates an exception for your own functions. A run, merge or update whose function throws it fails with
     * this status and message.
     *
     * @param cause may be null
     */
    public DistException(Status status, String message, Throwable cause) {
        this(status, message, message, "", cause);
    }

    /** Creates an exception about a method that C has as a function. */
    static DistException of(Status status, String function, String message) {
        String marked = "\u000E" + function + "()\u000F: " + message;
        String own = Texts.of(DistModule.own_words(Texts.words(marked)));
        return new DistException(status, own, marked, own.substring(0, own.indexOf("()")), null);
    }

    private DistException(Status status, String message, String marked, String function, Throwable cause) {
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
        this.function = function;
        parameter = "";
        this.marked = marked;
        told = false;
    }

    /**
     * Returns libdist's original message, without the hint. It is the same in every language and useful for
     * reports to the project. For an exception that a program created itself, it is the message of that
     * exception.
     */
    public String coreMessage() {
        return MARKS.matcher(marked).replaceAll("");
    }

    /** Returns {@link #coreMessage()} with marks around the names of C. */
    String marked() {
        return marked;
    }

    /** Returns whether the message comes from libdist's core, and not from this package. */
    boolean told() {
        return told;
    }

    /** Returns the kind of failure. */
    public Status status() {
        return status;
    }

    /** Returns the worker at fault; 0 in a strategy of one process. */
    public int worker() {
        return worker;
    }

    /** Returns the id of the replica at fault; -1 if there is none. */
    public int replica() {
        return replica;
    }

    /** Returns the logical device of the replica at fault; -1 means the whole replica. */
    public int logicalDevice() {
        return logicalDevice;
    }

    /** Returns the collective in which the failure was noticed. */
    public Collective collective() {
        return collective;
    }

    /** Returns the number of the group of replicas; 0 means all replicas. */
    public int group() {
        return group;
    }

    /** Returns the number of the collective in this run, from 1; 0 outside a collective. */
    public long sequence() {
        return sequence;
    }

    /** Returns the tag of the collective; "" if it has none. */
    public String tag() {
        return tag;
    }

    /** Returns what most replicas, or the one with the lowest id, requested, or what an argument must be; can be "". */
    public String expected() {
        return expected;
    }

    /** Returns what the replica at fault requested, or that it left or did not arrive, or what an argument is; can be "". */
    public String received() {
        return received;
    }

    /** Returns the method of this package that failed, as "Strategy.run"; can be "". */
    public String function() {
        return function;
    }

    /** Returns the argument or option at fault; can be "". */
    public String parameter() {
        return parameter;
    }

    /** Returns how to fix the error; can be "". */
    public String hint() {
        return hint;
    }

    @Override
    public String toString() {
        return getClass().getName() + ": " + status + ": " + getMessage();
    }
}
