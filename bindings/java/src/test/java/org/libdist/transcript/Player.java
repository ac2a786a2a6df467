// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.libdist.DistException;
import org.libdist.Status;
import org.libdist.Tap;
import org.libdist.Value;

/**
 * Plays one case: does its calls by the public API, is its functions, and holds each answer to the one
 * written.
 */
final class Player {
    private final Set<String> own =
            new HashSet<>(); // what this player's functions fail with, in C's words maybe
    private final Line.Case played;
    private final Map<String, Integer> leftOut;
    private final Map<String, Object> objects = new HashMap<>();
    private final Map<Object, String> names = new HashMap<>();
    private final Set<Line> done = java.util.Collections.newSetFromMap(new IdentityHashMap<>());
    private final Set<String> owned = new HashSet<>(); // libdist ended them, or will
    private final List<String> faults = new ArrayList<>();
    private final Map<Line, Throwable> prepared =
            new HashMap<>(); // lines of tables, and what their last call threw

    /** @param leftOut counts the calls that cannot be made, by reason */
    Player(Line.Case played, Map<String, Integer> leftOut) {
        this.played = played;
        this.leftOut = leftOut;
    }

    /** What is not as it is written. */
    List<String> play() {
        performBelow(played.root());
        checkAllDone(played.root(), true);
        for (Map.Entry<String, Object> object : objects.entrySet()) {
            if ("xdicvtapqn".indexOf(object.getKey().charAt(0)) >= 0 && !owned.contains(object.getKey())) {
                close((AutoCloseable) object.getValue());
            }
        }
        for (Map.Entry<String, Object> object : objects.entrySet()) {
            if (object.getKey().charAt(0) == 's') {
                close((AutoCloseable) object.getValue());
            }
        }
        return faults;
    }

    private void close(AutoCloseable object) {
        try {
            object.close();
        } catch (Exception e) {
            fault(played.root(), "cannot be closed: " + e);
        }
    }

    private void checkAllDone(Line line, boolean calls) {
        for (Line below : line.below) {
            boolean table = below.name.equals("source") || below.name.equals("file");
            if (!calls && !table && !done.contains(below)) {
                fault(below, "the function has not been called");
            }
            checkAllDone(below, !calls);
        }
    }

    synchronized void fault(Line line, String what) {
        faults.add(played + ", line " + line.number + ", " + line.name + ": " + what);
    }

    // ---- Calls ----

    /** Does the calls below a line. Gives what the last one of them threw; null: nothing. */
    private Throwable performBelow(Line line) {
        Throwable thrown = null;
        for (Line call : line.below) {
            thrown = perform(call);
        }
        return thrown;
    }

    private Throwable perform(Line call) {
        if (call.name.equals("workers")) {
            workers(call);
            return null;
        }
        String reason = LeftOut.reason(call);
        if (reason != null) {
            return leaveOut(call, reason);
        }
        Throwable thrown = null;
        Map<String, String> came = new LinkedHashMap<>();
        try {
            Calls.Call function = Calls.ALL.get(call.name);
            if (function == null) {
                throw new AssertionError("a function that is not known");
            }
            function.perform(this, call, came);
            came.put("status", "0");
        } catch (Throwable t) {
            thrown =
                    t.getCause() instanceof DistException && !(t instanceof DistException) ? t.getCause() : t;
            came.clear();
            if (thrown instanceof DistException) {
                came.put("status", Integer.toString(((DistException) thrown).status().code()));
                came.put("error", Literals.ofText(((DistException) thrown).coreMessage()));
                if (Tap.hasWordsOfC(thrown.getMessage()) && !own.contains(thrown.getMessage())) {
                    fault(call, "in C's words: " + thrown.getMessage());
                }
            } else {
                came.put("error", thrown.toString());
                thrown.printStackTrace();
            }
        }
        if (!call.answered.containsKey("status")) {
            came.remove("status", "0");
        }
        compare(call, call.answered, came);
        return thrown;
    }

    /** Does each worker's calls, on a thread of its own. */
    private void workers(Line call) {
        List<Thread> threads = new ArrayList<>();
        for (Line worker : call.below) {
            take(call, "worker", line -> line == worker);
            threads.add(new Thread(() -> performBelow(worker)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /** A call that is not made; gives what it would have thrown. */
    private synchronized Throwable leaveOut(Line call, String reason) {
        leftOut.merge(reason, 1, Integer::sum);
        done.addAll(call.below);
        return call.answered.getOrDefault("status", "0").equals("0") ? null : failure(call);
    }

    /** The failure that a line says, as an exception. */
    private synchronized DistException failure(Line line) {
        String error = line.answered.get("error");
        String text = error.equals("?") ? "a replica failed" : Literals.text(error);
        own.add(text);
        return new DistException(Status.values()[Integer.parseInt(line.answered.get("status"))], text, null);
    }

    private void compare(Line line, Map<String, String> expected, Map<String, String> came) {
        for (Map.Entry<String, String> field : expected.entrySet()) {
            String answer = came.remove(field.getKey());
            if (!field.getValue().equals(answer) && !(field.getValue().equals("?") && answer != null)) {
                fault(line, field.getKey() + " is " + answer + ", expected " + field.getValue());
            }
        }
        if (!came.isEmpty()) {
            fault(line, "came too: " + came);
        }
    }

    // ---- Objects ----

    /** The object that a field names; null where it is not there. */
    <T> T object(Class<T> type, Line line, String key) {
        return line.has(key) ? named(type, line.given.get(key)) : null;
    }

    synchronized<T> T named(Class<T> type, String name) {
        return type.cast(Objects.requireNonNull(objects.get(name), name));
    }

    /** A name whose object has ended: it may be another one's. */
    synchronized void unbind(String name) {
        names.remove(objects.remove(name));
    }

    synchronized String nameOf(Object object) {
        return object == null ? "-" : names.getOrDefault(object, "an object without a name");
    }

    /** Binds what has come to the name that is expected, and gives it; replicas anew. */
    synchronized String bind(Map<String, String> expected, String key, Object object) {
        String name = expected.get(key);
        if (object == null || name == null || name.equals("-")) {
            return nameOf(object);
        }
        Object before = objects.get(name);
        if (before != null && !before.equals(object) && name.charAt(0) != 'r') {
            return "another object, " + nameOf(object);
        }
        objects.putIfAbsent(name, object);
        if (name.charAt(0) == 'r') {
            objects.put(name, object);
        }
        names.put(object, name);
        return name;
    }

    /** As {@link #bind}, with what the value is. */
    void bindValue(Map<String, String> expected, Map<String, String> came, String key, Value value) {
        came.put(key, bind(expected, key, value));
        if (value != null && expected.containsKey(key + ".is")) {
            came.put(key + ".is", Literals.tree(value, this::nameOf));
        }
    }

    synchronized void libdistEnds(String name) {
        owned.add(name);
    }

    // ---- Functions ----

    /** The line below a call that fits, and that nobody has used. */
    synchronized Line take(Line call, String kind, Predicate<Line> fits) {
        for (Line line : call.below) {
            if (line.name.equals(kind) && !done.contains(line) && fits.test(line)) {
                done.add(line);
                return line;
            }
        }
        throw new AssertionError(
                "line " + call.number + ": its function was called as no line says: " + kind);
    }

    /**
     * A function's line: what it was given, its calls, and how it ends. Gives the result's name; null: none.
     */
    String perform(Line function, Map<String, String> given) {
        compare(function, function.given, given);
        return outcome(function, performBelow(function));
    }

    private String outcome(Line function, Throwable last) {
        String status = function.answered.getOrDefault("status", "0");
        if (status.equals("0")) {
            String result = function.answered.getOrDefault("result", "-");
            return result.equals("-") ? null : result;
        }
        if (!function.below.isEmpty()) {
            Map<String, String> inner = function.below.get(function.below.size() - 1).answered;
            if (status.equals(inner.get("status"))
                    && Objects.equals(inner.get("error"), function.answered.get("error")) && last != null) {
                throw Player.<RuntimeException>unchecked(last);
            }
        }
        throw failure(function);
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable t) throws T {
        throw(T) t;
    }

    /** Does the calls of all lines of a table, before it is read. */
    void prepare(Line call) {
        for (Line line : call.below) {
            Throwable last = performBelow(line);
            synchronized (this) {
                prepared.put(line, last);
            }
        }
    }

    /** What a prepared line of a table gives; null: the end. */
    Value element(Line call, Predicate<Line> fits) {
        for (Line line : call.below) {
            if (fits.test(line)) {
                if ("11".equals(line.answered.get("status"))) {
                    return null;
                }
                Throwable last;
                synchronized (this) {
                    last = prepared.get(line);
                }
                return named(Value.class, outcome(line, last));
            }
        }
        throw new AssertionError("line " + call.number + ": no such element");
    }
}
