// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Plays the golden cases' transcripts: `TranscriptTest FILE [PART-OF-A-CASE'S-NAME]`; one line of TAP for
 * each area.
 */
public final class TranscriptTest {
    private static final int SHOWN = 20;

    private TranscriptTest() {}

    public static void main(String[] args) throws Exception {
        Map<String, List<Line.Case>> areas = new LinkedHashMap<>();
        for (Line.Case one : Line.read(Path.of(args[0]))) {
            if (args.length < 2 || one.toString().contains(args[1])) {
                areas.computeIfAbsent(one.area(), area -> new ArrayList<>()).add(one);
            }
        }
        System.out.println("1.." + areas.size());
        boolean passed = true;
        int number = 0;
        for (Map.Entry<String, List<Line.Case>> area : areas.entrySet()) {
            boolean good = play(area.getValue());
            passed &= good;
            System.out.printf("%s %d - %s%n", good ? "ok" : "not ok", ++number, area.getKey());
        }
        System.exit(passed ? 0 : 1);
    }

    private static boolean play(List<Line.Case> cases) {
        int wrong = 0;
        Map<String, Integer> leftOut = new TreeMap<>();
        for (Line.Case one : cases) {
            List<String> faults = new Player(one, leftOut).play();
            if (!faults.isEmpty() && ++wrong <= SHOWN) {
                faults.stream().limit(3).forEach(fault -> System.out.println("# " + fault));
            }
        }
        leftOut.forEach((reason, times) -> System.out.println("# calls left out: " + times + ": " + reason));
        System.out.println("# " + cases.size() + " cases, " + wrong + " went another way");
        return wrong == 0;
    }
}
