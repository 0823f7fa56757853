/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tool.h"

#include <ucs/regcache/regcache.h>
#include <uct/ib/helper_md/config/values.h>

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#define TOOL_OPTIONS_MAX 64

/* Of the first option; keys below are letters */
#define TOOL_OPTIONS_KEY 256

/* No run that is made or replayed takes longer: 11 days */
#define TOOL_OPTIONS_TIME_MAX_NS 1e15

/* All tables in one, as argp wants them */
typedef struct tool_parser {
    struct argp_option  longs[TOOL_OPTIONS_MAX + 1];
    const tool_option_t *options[TOOL_OPTIONS_MAX]; /* of the same index */
    void                *objects[TOOL_OPTIONS_MAX];
    size_t              count;
    int                 first; /* argument that is no option */
} tool_parser_t;

/* The value's name is the first word of an option's help */
static void tool_parser_add(tool_parser_t *parser, const tool_option_t *option,
                            void *object)
{
    const char *help = (option->help != NULL) ? option->help : " ";
    int length       = strcspn(help, " ");

    parser->longs[parser->count] = (struct argp_option){
        .name  = (option->name[1] != '\0') ? option->name : NULL,
        .key   = (option->name[1] != '\0') ?
                         TOOL_OPTIONS_KEY + (int)parser->count : option->name[0],
        .arg   = (length > 0) ? tool_format("%.*s", length, help) : NULL,
        .flags = (option->help != NULL) ? 0 : OPTION_HIDDEN,
        .doc   = help + length + 1
    };
    parser->options[parser->count]   = option;
    parser->objects[parser->count++] = object;
}

/* An option whose value was forgotten does not take the next option, or `--`,
 * for it: `--report -- true` has no value. One that does begin with `--` is
 * given as `--report=--value`. */
static error_t tool_parser_take(int key, char *value, struct argp_state *state)
{
    tool_parser_t *parser = state->input;
    size_t index          = 0;
    const tool_option_t *option;
    const char *dashes;
    void *field;

    if (key == ARGP_KEY_ARG) {
        parser->first = state->next - 1;
        state->next   = state->argc;
        return 0;
    }
    while ((index < parser->count) && (parser->longs[index].key != key)) {
        ++index;
    }
    if (index == parser->count) {
        return ARGP_ERR_UNKNOWN;
    }

    option = parser->options[index];
    dashes = (option->name[1] != '\0') ? "--" : "-";
    field  = (char*)parser->objects[index] + option->offset;
    if (option->parse == NULL) {
        *(int*)field = 1;
    } else if ((value == state->argv[state->next - 1]) &&
               !strncmp(value, "--", 2)) {
        argp_error(state, "no value given for option '%s%s'", dashes,
                   option->name);
    } else if (option->parse(field, value) != 0) {
        argp_error(state, "%s%s: '%s' is not valid, allowed: %s", dashes,
                   option->name, value, option->allowed);
    } else if (option->variable != NULL) {
        setenv(option->variable, value, 1);
    }
    return 0;
}

int tool_options_parse(int argc, char **argv, unsigned flags,
                       const tool_options_t *groups, const tool_usage_t *usage)
{
    tool_parser_t parser = {.first = argc};
    char *name           = argv[0];
    struct argp argp     = {.options  = parser.longs,
                            .parser   = tool_parser_take,
                            .args_doc = usage->arguments,
                            .doc      = usage->text};
    const tool_option_t *option;
    size_t i;

    for (; groups->table != NULL; ++groups) {
        for (option = groups->table; option->name != NULL; ++option) {
            tool_parser_add(&parser, option, groups->object);
        }
    }
    argp_err_exit_status = TOOL_EXIT_USAGE;
    argv[0] = tool_format("%s %s", TOOL_NAME, name);
    argp_parse(&argp, argc, argv, flags, NULL, &parser);
    free(argv[0]);
    argv[0] = name;
    for (i = 0; i < parser.count; ++i) {
        free((char*)parser.longs[i].arg);
    }
    return parser.first;
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
