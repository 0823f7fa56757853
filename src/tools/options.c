/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tool.h"

#include <ucs/regcache/regcache.h>
#include <ucs/sys/math.h>
#include <uct/ib/helper_md/config/values.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define TOOL_OPTIONS_MAX 64

/* What getopt returns for a long option, and its index. It has to differ: of those that
 * do not, getopt takes the first that an abbreviation fits. */
#define TOOL_OPTIONS_LONG 256

/* Of the help: where an option's text begins, less one, and columns of a terminal */
#define TOOL_OPTIONS_INDENT 29
#define TOOL_OPTIONS_WIDTH  80

/* No run that is made or replayed takes longer: 11 days */
#define TOOL_OPTIONS_TIME_MAX_NS 1e15

/* All tables in one, as getopt wants them */
typedef struct tool_parser {
    struct option       longs[TOOL_OPTIONS_MAX + 1];
    const tool_option_t *options[TOOL_OPTIONS_MAX]; /* of the same index */
    void                *objects[TOOL_OPTIONS_MAX];
    size_t              count;
    char                letters[TOOL_OPTIONS_MAX];
} tool_parser_t;

/* An option whose value was forgotten does not take the next option, or `--`,
 * for it: `--report -- true` has no value. One that does begin with `--` is
 * given as `--report=--value`. */
static int tool_getopt(int argc, char **argv, const char *letters,
                       const struct option *options)
{
    int opt = getopt_long(argc, argv, letters, options, NULL);

    if ((opt != -1) && (opt != '?') && (opt != ':') && (optarg != NULL) &&
        (optarg == argv[optind - 1]) && !strncmp(optarg, "--", 2)) {
        --optind; /* where getopt stays when there is nothing behind it */
        return ':';
    }
    return opt;
}

static void tool_bad_option(const char *command, int opt, char *const *argv)
{
    const char *arg = argv[optind - 1];

    /* getopt has gone past a long option, but stays at a group of letters */
    if (opt == ':') {
        tool_message("no value given for option '%s' (see %s %s --help)", arg,
                     TOOL_NAME, command);
    } else if (optopt >= TOOL_OPTIONS_LONG) {
        tool_message("this option takes no value: '%s' (see %s %s --help)", arg,
                     TOOL_NAME, command);
    } else if (optopt >= ' ') {
        tool_message("unknown option '-%c' (see %s %s --help)", optopt,
                     TOOL_NAME, command);
    } else {
        tool_message("unknown option '%s' (see %s %s --help)", arg, TOOL_NAME,
                     command);
    }
}

static void tool_parser_add(tool_parser_t *parser, const tool_option_t *option,
                            void *object)
{
    struct option *last = &parser->longs[parser->count];

    last->name    = option->name;
    last->has_arg = (option->parse != NULL) ? required_argument : no_argument;
    last->val     = TOOL_OPTIONS_LONG + parser->count;
    if (option->name[1] == '\0') {
        strncat(parser->letters, option->name, 1);
        strcat(parser->letters, (option->parse != NULL) ? ":" : "");
        last->name = ""; /* nobody can type it */
    }
    parser->options[parser->count]   = option;
    parser->objects[parser->count++] = object;
}

static void tool_parser_init(tool_parser_t *parser, const char *order,
                             const tool_options_t *groups)
{
    static const tool_option_t help = {.name = "help",
                                       .help = " show this text"};
    const tool_option_t *option;

    memset(parser, 0, sizeof(*parser));
    snprintf(parser->letters, sizeof(parser->letters), "%s:", order);
    for (; groups->table != NULL; ++groups) {
        for (option = groups->table; option->name != NULL; ++option) {
            tool_parser_add(parser, option, groups->object);
        }
    }
    tool_parser_add(parser, &help, NULL);
}

/* @return Zero, or -1 after a message */
static int tool_parser_take(const tool_parser_t *parser, size_t index,
                            const char *value)
{
    const tool_option_t *option = parser->options[index];
    void *field                 = (char*)parser->objects[index] +
                                  option->offset;

    if (option->parse == NULL) {
        *(int*)field = 1;
        return 0;
    }
    if (option->parse(field, value) == 0) {
        return (option->variable != NULL) ?
                       setenv(option->variable, value, 1) : 0;
    }
    tool_message("%s%s: '%s' is not valid, allowed: %s",
                 (option->name[1] == '\0') ? "-" : "--", option->name, value,
                 option->allowed);
    return -1;
}

/* The value's name is the first word of an option's help */
static void tool_option_help(const tool_option_t *option)
{
    int length       = strcspn(option->help, " ");
    const char *text = option->help + length;
    int column       = printf("  %s%s %.*s",
                              (option->name[1] == '\0') ? "-" : "--",
                              option->name, length, option->help);

    column += printf("%*s", ucs_max(0, TOOL_OPTIONS_INDENT - column), "");
    for (; *(text += strspn(text, " ")) != '\0'; text += length) {
        length = strcspn(text, " ");
        if (column + 1 + length > TOOL_OPTIONS_WIDTH) {
            putchar('\n');
            column = printf("%*s", TOOL_OPTIONS_INDENT, "");
        }
        column += printf(" %.*s", length, text);
    }
    putchar('\n');
}

static void tool_parser_help(const tool_parser_t *parser, const char *command,
                             const tool_usage_t *usage)
{
    size_t i;

    printf("Usage: %s %s %s\n\n%s\nOptions:\n", TOOL_NAME, command,
           usage->arguments, usage->before);
    for (i = 0; i < parser->count; ++i) {
        if (parser->options[i]->help != NULL) {
            tool_option_help(parser->options[i]);
        }
    }
    if (usage->after != NULL) {
        printf("\n%s", usage->after);
    }
}

int tool_options_parse(int argc, char **argv, const char *order,
                       const tool_options_t *groups,
                       const tool_usage_t *usage)
{
    tool_parser_t parser;
    int opt, index;

    tool_parser_init(&parser, order, groups);
    while ((opt = tool_getopt(argc, argv, parser.letters, parser.longs)) !=
           -1) {
        if ((opt == '?') || (opt == ':')) {
            tool_bad_option(argv[0], opt, argv);
            return TOOL_EXIT_USAGE;
        }
        index = opt - TOOL_OPTIONS_LONG;
        if (index < 0) { /* a letter */
            for (index = 0; (parser.options[index]->name[0] != opt) ||
                            (parser.options[index]->name[1] != '\0');
                 ++index) {
            }
        }
        if (parser.objects[index] == NULL) {
            tool_parser_help(&parser, argv[0], usage);
            return tool_finish_output();
        }
        if (tool_parser_take(&parser, index, optarg) != 0) {
            return TOOL_EXIT_USAGE;
        }
    }
    return -1;
}

int tool_option_size(void *field, const char *value)
{
    return uct_helper_value_size(value, field) ? 0 : -1;
}

int tool_option_count(void *field, const char *value)
{
    uint64_t *count = field;

    return (uct_helper_value_count(value, count) &&
            ((*count <= UINT32_MAX) || !strcasecmp(value, "inf"))) ? 0 : -1;
}

int tool_option_time(void *field, const char *value)
{
    double *seconds = field;
    double ns;

    if (!uct_helper_value_time(value, TOOL_OPTIONS_TIME_MAX_NS, &ns)) {
        return -1;
    }
    *seconds = ns * 1e-9;
    return 0;
}

int tool_option_share(void *field, const char *value)
{
    return uct_helper_value_share(value, field) ? 0 : -1;
}

int tool_option_cost(void *field, const char *value)
{
    double *cost = field;

    return ((*value != '\0') &&
            uct_helper_value_cost(value, &cost[0], &cost[1])) ? 0 : -1;
}

int tool_word_find(const char *word, const char *const *words, int count)
{
    int i;

    for (i = 0; (i < count) && strcasecmp(words[i], word); ++i) {
    }
    return i;
}

int tool_policy_find(const char *name)
{
    return tool_word_find(name, ucs_regcache_policy_names,
                          UCS_REGCACHE_POLICY_LAST);
}

int tool_option_text(void *field, const char *value)
{
    *(const char**)field = value;
    return 0;
}
