// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A line of a transcript (tests/golden/TRANSCRIPTS.md), and those below it. */
final class Line {
    final int number;
    final int depth;
    final String name;
    final Map<String, String> given = new LinkedHashMap<>();
    final Map<String, String> answered = new LinkedHashMap<>();
    final List<Line> below = new ArrayList<>();

    private Line(int number, int depth, String name) {
        this.number = number;
        this.depth = depth;
        this.name = name;
    }

    /** A case: its calls are below the root. */
    record Case(String area, String id, Line root) {
        @Override
        public String toString() {
            return area + " " + id;
        }
    }

    static List<Case> read(Path file) throws IOException {
        List<Case> cases = new ArrayList<>();
        List<Line> open = new ArrayList<>(); // the latest line of each depth, the root first
        try (BufferedReader in = Files.newBufferedReader(file)) {
            expect(in.readLine(), "dist-transcripts\t1");
            int number = 2;
            int lines = 0;
            for (String text = in.readLine(); text != null; text = in.readLine(), number++) {
                String[] fields = text.split("\t", -1);
                if (fields[0].equals("case")) {
                    Line root = new Line(number, -1, "case");
                    open = new ArrayList<>(List.of(root));
                    cases.add(
                            new Case(Literals.text("t:" + fields[1]), Literals.text("t:" + fields[2]), root));
                } else if (fields[0].equals("end")) {
                    expect(text, "end\t" + cases.size() + "\t" + lines);
                    return cases;
                } else {
                    Line line = parse(number, fields);
                    open.subList(line.depth + 1, open.size()).clear();
                    open.get(line.depth).below.add(line);
                    open.add(line);
                    lines++;
                }
            }
        }
        throw new IOException(file + " has no end");
    }

    private static void expect(String line, String expected) throws IOException {
        if (!expected.equals(line)) {
            throw new IOException("\"" + line + "\" in the place of \"" + expected + "\"");
        }
    }

    private static Line parse(int number, String[] fields) throws IOException {
        Line line = new Line(number, Integer.parseInt(fields[0]), fields[1]);
        Map<String, String> side = line.given;
        for (int i = 2; i < fields.length; i++) {
            if (fields[i].equals("->")) {
                side = line.answered;
                continue;
            }
            int at = fields[i].indexOf('=');
            if (at < 0 || side.put(fields[i].substring(0, at), fields[i].substring(at + 1)) != null) {
                throw new IOException("line " + number + ": " + fields[i]);
            }
        }
        return line;
    }

    boolean has(String key) {
        return !given.getOrDefault(key, "-").equals("-");
    }

    /** An integer that is given; 0 where it is not. */
    long integer(String key) {
        return Long.parseLong(given.getOrDefault(key, "0"));
    }

    int number(String key) {
        return (int) integer(key);
    }

    /** A text that is given; null where it is not. */
    String text(String key) {
        return has(key) ? Literals.text(given.get(key)) : null;
    }

    /** The items of an array that is given. */
    List<String> items(String key) {
        return Literals.items(given.getOrDefault(key, "()"));
    }

    long[] integers(String key) {
        return items(key).stream().mapToLong(Long::parseLong).toArray();
    }
}
