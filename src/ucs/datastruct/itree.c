/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "itree.h"

#include <ucs/sys/hash.h>

typedef ucs_itree_node_t node_t;

/* Neighbours in memory get unrelated priorities */
static uint64_t ucs_itree_priority(const node_t *node)
{
    return ucs_hash_mix((uintptr_t)node);
}

static int ucs_itree_before(const node_t *a, const node_t *b)
{
    return (a->start != b->start) ? (a->start < b->start) : (a < b);
}

static void ucs_itree_update(node_t *node)
{
    uintptr_t max_end = node->end;

    if ((node->left != NULL) && (node->left->max_end > max_end)) {
        max_end = node->left->max_end;
    }
    if ((node->right != NULL) && (node->right->max_end > max_end)) {
        max_end = node->right->max_end;
    }
    node->max_end = max_end;
}

/* Split by key into what is before @a key and what is not */
static void ucs_itree_split(node_t *node, const node_t *key, node_t **before_p,
                            node_t **after_p)
{
    if (node == NULL) {
        *before_p = NULL;
        *after_p  = NULL;
    } else if (ucs_itree_before(node, key)) {
        ucs_itree_split(node->right, key, &node->right, after_p);
        *before_p = node;
        ucs_itree_update(node);
    } else {
        ucs_itree_split(node->left, key, before_p, &node->left);
        *after_p = node;
        ucs_itree_update(node);
    }
}

static node_t *ucs_itree_merge(node_t *before, node_t *after)
{
    if (before == NULL) {
        return after;
    }
    if (after == NULL) {
        return before;
    }
    if (ucs_itree_priority(before) >= ucs_itree_priority(after)) {
        before->right = ucs_itree_merge(before->right, after);
        ucs_itree_update(before);
        return before;
    }
    after->left = ucs_itree_merge(before, after->left);
    ucs_itree_update(after);
    return after;
}

static node_t *ucs_itree_insert_at(node_t *root, node_t *node)
{
    if ((root == NULL) ||
        (ucs_itree_priority(node) > ucs_itree_priority(root))) {
        ucs_itree_split(root, node, &node->left, &node->right);
        ucs_itree_update(node);
        return node;
    }
    if (ucs_itree_before(node, root)) {
        root->left = ucs_itree_insert_at(root->left, node);
    } else {
        root->right = ucs_itree_insert_at(root->right, node);
    }
    ucs_itree_update(root);
    return root;
}

void ucs_itree_insert(ucs_itree_t *tree, node_t *node)
{
    tree->root = ucs_itree_insert_at(tree->root, node);
    ++tree->count;
}

static node_t *ucs_itree_remove_at(node_t *root, node_t *node)
{
    if (root == node) {
        return ucs_itree_merge(root->left, root->right);
    }
    if (ucs_itree_before(node, root)) {
        root->left = ucs_itree_remove_at(root->left, node);
    } else {
        root->right = ucs_itree_remove_at(root->right, node);
    }
    ucs_itree_update(root);
    return root;
}

void ucs_itree_remove(ucs_itree_t *tree, node_t *node)
{
    tree->root = ucs_itree_remove_at(tree->root, node);
    --tree->count;
}

/* First in order that overlaps [start, end) and comes after @a after, if any */
static node_t *ucs_itree_search(node_t *node, const node_t *after,
                                uintptr_t start, uintptr_t end)
{
    node_t *found;

    if ((node == NULL) || (node->max_end <= start)) {
        return NULL;
    }
    if ((after != NULL) && !ucs_itree_before(after, node)) {
        return ucs_itree_search(node->right, after, start, end);
    }
    found = ucs_itree_search(node->left, after, start, end);
    if (found != NULL) {
        return found;
    }
    if (node->start >= end) {
        return NULL;
    }
    if (node->end > start) {
        return node;
    }
    return ucs_itree_search(node->right, after, start, end);
}

node_t *ucs_itree_first(const ucs_itree_t *tree, uintptr_t start, uintptr_t end)
{
    return ucs_itree_search(tree->root, NULL, start, end);
}

node_t *ucs_itree_next(const ucs_itree_t *tree, const node_t *node,
                       uintptr_t start, uintptr_t end)
{
    return ucs_itree_search(tree->root, node, start, end);
}
