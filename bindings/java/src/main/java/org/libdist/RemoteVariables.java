// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Reads and changes variables of parameter servers, for closures and coordinators. */
final class RemoteVariables {
    private RemoteVariables() {}

    @FunctionalInterface
    interface Read {
        void with(byte[][] names, long n, long[] out);
    }

    @FunctionalInterface
    interface Rows {
        void with(byte[] name, long indices, long[] out);
    }

    @FunctionalInterface
    interface Change {
        void with(byte[] name, int how, long value);
    }

    @FunctionalInterface
    interface Update {
        void with(byte[] function, byte[][] names, long n, long arguments);
    }

    static List<Value> read(String[] names, Read read) {
        byte[][] texts = Texts.all(Arrays.asList(Objects.requireNonNull(names, "names")));
        long[] out = new long[texts.length];
        read.with(texts, texts.length, out);
        return Arrays.stream(out).mapToObj(Value::taken).toList();
    }

    static Value rows(String name, Value indices, Rows rows) {
        byte[] text = Texts.bytes(name, "name");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            rows.with(text, uses.of(indices, "indices"), out);
        }
        return Value.taken(out[0]);
    }

    static void assign(String name, Assign how, Value value, Change change) {
        byte[] text = Texts.bytes(name, "name");
        Objects.requireNonNull(how, "how");
        try (Uses uses = new Uses()) {
            change.with(text, how.code, uses.of(value, "value"));
        }
    }

    static void scatter(String name, Scatter how, Value slices, Change change) {
        byte[] text = Texts.bytes(name, "name");
        Objects.requireNonNull(how, "how");
        try (Uses uses = new Uses()) {
            change.with(text, how.code, uses.of(slices, "slices"));
        }
    }

    static void update(String function, List<String> names, Value arguments, Update update) {
        byte[] text = Texts.bytes(function, "function");
        byte[][] texts = Texts.all(names, "names");
        try (Uses uses = new Uses()) {
            update.with(text, texts, texts.length, uses.ofNullable(arguments));
        }
    }
}
