"""docs/openapi.yaml: what it says of a request and its answer, and whether it is sound in itself."""
import json
import re

import jsonschema
import yaml

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
JSON = "application/json"


class Loader(yaml.SafeLoader):
    """YAML that has no key twice."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise ValueError(f"line {node.start_mark.line + 1}: twice: {', '.join(map(str, twice))}")
    return loader.construct_mapping(node)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


class Document:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.root = yaml.load(file, Loader)
        self.operations = {(method.upper(), path): operation
                           for path, item in self.root["paths"].items()
                           for method, operation in item.items() if method in METHODS}

    # ---- finding -------------------------------------------------------------------------------

    def follow(self, node):
        """What a reference stands for."""
        while isinstance(node, dict) and "$ref" in node:
            at = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            node = at
        return node

    def operation_of(self, method, target):
        """The (method, path) that a request is, or None. A literal path wins over one with parameters."""
        asked = target.split("?")[0]
        for path in sorted(self.root["paths"], key=lambda p: p.count("{")):
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), asked) \
                    and (method, path) in self.operations:
                return method, path
        return None

    def statuses(self, operation):
        return {int(s) for s in self.operations[operation]["responses"] if s != "default"}

    # ---- checking ------------------------------------------------------------------------------

    def schema_problems(self, schema, value):
        # References are looked up from the root of what is given to the validator.
        rooted = {**schema, "components": self.root["components"]}
        errors = jsonschema.Draft202012Validator(rooted).iter_errors(value)
        return [f"{error.json_path}: {error.message[:300]}" for error in errors]

    def request_problems(self, operation, body):
        described = self.operations[operation].get("requestBody")
        if described is None:
            return [] if body is None else ["the operation has no body"]
        if body is None:
            return ["the body is required"] if described["required"] else []
        return self.schema_problems(described["content"][JSON]["schema"], body)

    def answer_problems(self, operation, status, headers, body):
        """What of an answer is not as described. headers: lower-case names."""
        if status not in self.statuses(operation):
            return [f"status {status} is not described: {body[:300]!r}"]
        response = self.follow(self.operations[operation]["responses"][str(status)])
        problems = []
        for name, header in response.get("headers", {}).items():
            header, value = self.follow(header), headers.get(name.lower())
            if value is None:
                problems.append(f"no header {name}")
            else:
                if self.follow(header["schema"])["type"] == "integer":
                    value = json.loads(value)
                problems += self.schema_problems(header["schema"], value)
        kind = headers.get("content-type")
        if kind not in response["content"]:
            problems.append(f"content type {kind} is not described")
        elif kind == JSON:
            problems += self.schema_problems(response["content"][JSON]["schema"], json.loads(body))
        return problems

    # ---- the document itself -------------------------------------------------------------------

    def walk(self, node=None, at="#"):
        """Every object, with where it is."""
        node = self.root if node is None else node
        if isinstance(node, dict):
            yield at, node
        parts = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in parts:
            if isinstance(value, (dict, list)):
                yield from self.walk(value, f"{at}/{key}")

    def reference_problems(self):
        """References that lead nowhere, and components that nothing refers to."""
        used, problems = set(), []
        for at, node in self.walk():
            if isinstance(node.get("$ref"), str):
                used.add(node["$ref"])
                try:
                    self.follow(node)
                except KeyError:
                    problems.append(f"{at}: {node['$ref']} is not there")
        for kind, members in self.root["components"].items():
            problems += [f"#/components/{kind}/{name} is not used" for name in members
                         if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in used]
        return problems

    def sound_problems(self):
        problems, ids = [], set()
        tags = {tag["name"] for tag in self.root["tags"]}
        for (method, path), operation in self.operations.items():
            where = f"{method} {path}"
            if not operation.get("summary"):
                problems.append(f"{where}: no summary")
            if not set(operation["tags"]) <= tags:
                problems.append(f"{where}: a tag that is not described")
            if operation["operationId"] in ids:
                problems.append(f"{where}: its operationId is another's too")
            ids.add(operation["operationId"])
            shared = self.root["paths"][path].get("parameters", [])
            named = {p["name"] for p in map(self.follow, shared + operation.get("parameters", []))
                     if p["in"] == "path"}
            if named != set(re.findall(r"\{(\w+)\}", path)):
                problems.append(f"{where}: its path has other parameters")
        for name, schema in self.root["components"]["schemas"].items():
            try:
                jsonschema.Draft202012Validator.check_schema(schema)
            except jsonschema.SchemaError as error:
                problems.append(f"schema {name}: {error.message}")
        return problems

    def example_problems(self):
        problems = []
        for operation, described in self.operations.items():
            if "requestBody" in described:
                example = described["requestBody"]["content"][JSON]["example"]
                problems += [f"{operation}: {p}" for p in self.request_problems(operation, example)]
        return problems

    def open_answers(self):
        """Objects of answers that may have any further field without saying so."""
        found, seen = set(), set()

        def look(node, at, part_of_another):
            if isinstance(node, list):
                for value in node:
                    look(value, at, part_of_another)
            if not isinstance(node, dict) or (id(node), part_of_another) in seen:
                return
            seen.add((id(node), part_of_another))
            if "$ref" in node:
                look(self.follow(node), node["$ref"], part_of_another)
            if node.get("type") == "object" and not part_of_another and not \
                    {"additionalProperties", "unevaluatedProperties"} & set(node):
                found.add(at)
            look(node.get("allOf"), at, True)
            for key in ("oneOf", "anyOf"):
                look(node.get(key), at, part_of_another)
            look(node.get("items"), at, False)
            for name, value in node.get("properties", {}).items():
                look(value, f"{at}/{name}", False)

        for operation, described in self.operations.items():
            for response in map(self.follow, described["responses"].values()):
                look(response["content"].get(JSON, {}).get("schema"), str(operation), False)
        return sorted(found)
