// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/** The smallest test runner that meson test understands: names, checks, and TAP lines. */
public final class Tap {
    interface Test {
        void run() throws Exception;
    }

    private record Named(String name, Test test) {}

    private static final Pattern C_WORD = Pattern.compile(
            "\\bdist_|\\bDIST_|\\bNULL\\b|[a-z]->[a-z]|_ns\\b|\\b(reduce|initial)_fn\\b|\\bdestroy\\b|\\bnum_[a-z]");
    /** Variables of the environment have one name in all languages. */
    private static final Pattern ENVIRONMENT = Pattern.compile(
            "\\bDIST_(TRANSPORT|REPLICAS|JOB_SECRET|PLAINTEXT|TLS_\\w+|BIND_ADDRESS|LEASE_SECONDS|MODULE_FOLDER)\\b");

    private final List<Named> tests = new ArrayList<>();

    /** Of all tests those whose names -Ddist.tests=REGEX finds. */
    void add(String name, Test test) {
        if (Pattern.compile(System.getProperty("dist.tests", "")).matcher(name).find()) {
            tests.add(new Named(name, test));
        }
    }

    /** Runs them all; the process's exit status says whether they passed. */
    void runAll() {
        System.out.println("1.." + tests.size());
        boolean passed = true;
        for (int i = 0; i < tests.size(); i++) {
            Named named = tests.get(i);
            try {
                named.test.run();
                System.out.printf("ok %d - %s%n", i + 1, named.name);
            } catch (Throwable t) {
                passed = false;
                System.out.printf("not ok %d - %s%n", i + 1, named.name);
                t.printStackTrace();
            }
        }
        System.exit(passed ? 0 : 1);
    }

    static void check(boolean holds, Object... seen) {
        if (!holds) {
            throw new AssertionError(List.of(seen).toString());
        }
    }

    static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    static void floats(Tensor actual, float... expected) {
        float[] values = Tensors.toFloats(actual);
        if (!Arrays.equals(expected, values)) {
            throw new AssertionError(
                    "expected " + Arrays.toString(expected) + ", got " + Arrays.toString(values));
        }
    }

    /** Whether a message says what only a reader of C's header knows. */
    public static boolean hasWordsOfC(String message) {
        return message != null
                && C_WORD.matcher(ENVIRONMENT.matcher(message.replaceAll("\"[^\"]*\"", "")).replaceAll("")).find();
    }

    static <T extends Throwable> T thrown(Class<T> type, Test test) {
        try {
            test.run();
        } catch (Throwable t) {
            if (type.isInstance(t)) {
                check(!hasWordsOfC(t.getMessage()), t);
                return type.cast(t);
            }
            throw new AssertionError("expected " + type.getName(), t);
        }
        throw new AssertionError("expected " + type.getName() + ", nothing was thrown");
    }
}
