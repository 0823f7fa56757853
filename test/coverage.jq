# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Sums up gcov's JSON of several compilations (slurped) of the same sources.
def names: $machine | split("\n") | map(select(. != ""));

[.[] | .files[] | select(.file | test("ucs/regcache/.*\\.c$|/region\\.h$")) |
 (.file | sub(".*ucs/regcache/"; "")) as $file | .lines[] |
 {file: $file, line: .line_number, function: (.function_name // ""),
  count, taken: [.branches[] | select(.throw | not) | .count]}] |
group_by([.file, .line]) |
# One line may be compiled into several functions (inline ones into none)
map({file: .[0].file, line: .[0].line, function: .[0].function,
     count: (map(.count) | add),
     # branches of one line, position by position; compilations that lay a
     # line out in another way are looked at one by one
     branches: (map(.taken) | group_by(length) |
                map(transpose | map(add)) |
                map(select(length > 0)) |
                map({all: length, taken: map(select(. > 0)) | length}) |
                max_by(.taken / .all))}) as $lines |
($lines | map(select(.file | endswith(".c")))) as $cache |
{
  all: ($cache | length),
  taken: ($cache | map(select(.count > 0)) | length),
  files: ($cache | group_by(.file) |
          map({file: .[0].file, all: length,
               taken: (map(select(.count > 0)) | length),
               missed: (map(select(.count == 0) | .line | tostring) |
                        join(" "))})),
  branches: ([$lines[] | select(.function as $f | names | index($f))] |
             group_by(.function) |
             map({function: .[0].function,
                  all: (map(.branches.all // 0) | add),
                  taken: (map(.branches.taken // 0) | add),
                  missed: (map(select((.branches != null) and
                                      (.branches.taken < .branches.all)) |
                               "\(.file):\(.line)") | join(" "))}))
}
