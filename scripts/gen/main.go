// Command gen writes the facts that the agent is typed by: the wire contracts of the CRI and of plugins as .proto text (names and
// numbers only) and the Kubernetes object types as TypeScript with a decoding schema and the strategies of patches. Run by scripts/gen.ts.
//
// usage: gen PROTO_OUT TYPES_OUT SCHEMA_OUT PATCH_OUT PLUGIN_PROTOS_DIR
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	storage "k8s.io/api/storage/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	podresourcesalpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ---- proto ----

func protoType(f protoreflect.FieldDescriptor) string {
	local := func(n protoreflect.FullName) string { return strings.TrimPrefix(string(n), string(f.ParentFile().Package())+".") }
	if f.IsMap() {
		return fmt.Sprintf("map<%s, %s>", protoType(f.MapKey()), protoType(f.MapValue()))
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		return local(f.Message().FullName())
	case protoreflect.EnumKind:
		return local(f.Enum().FullName())
	}
	return f.Kind().String()
}

func protoField(f protoreflect.FieldDescriptor, indent string) string {
	label := ""
	if f.IsList() {
		label = "repeated "
	} else if f.HasOptionalKeyword() {
		label = "optional "
	}
	return fmt.Sprintf("%s%s%s %s = %d;\n", indent, label, protoType(f), f.Name(), f.Number())
}

func protoEnum(e protoreflect.EnumDescriptor, indent string) string {
	t := fmt.Sprintf("%senum %s {\n", indent, e.Name())
	for j := 0; j < e.Values().Len(); j++ {
		t += fmt.Sprintf("%s  %s = %d;\n", indent, e.Values().Get(j).Name(), e.Values().Get(j).Number())
	}
	return t + indent + "}\n\n"
}

func protoMessage(m protoreflect.MessageDescriptor, b *strings.Builder) {
	fmt.Fprintf(b, "message %s {\n", m.Name())
	for i := 0; i < m.Enums().Len(); i++ {
		b.WriteString(protoEnum(m.Enums().Get(i), "  "))
	}
	done := map[string]bool{}
	for i := 0; i < m.Fields().Len(); i++ {
		f := m.Fields().Get(i)
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
			if done[string(o.Name())] {
				continue
			}
			done[string(o.Name())] = true
			fmt.Fprintf(b, "  oneof %s {\n", o.Name())
			for j := 0; j < o.Fields().Len(); j++ {
				b.WriteString(protoField(o.Fields().Get(j), "    "))
			}
			b.WriteString("  }\n")
			continue
		}
		b.WriteString(protoField(f, "  "))
	}
	b.WriteString("}\n\n")
}

// protoText is a file of the wire contract; of is what it is the contract of.
func protoText(file protoreflect.FileDescriptor, of string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// The wire contract of %s: names and numbers. Written by scripts/gen; do not edit.\n", of)
	fmt.Fprintf(&b, "syntax = \"proto3\";\n\npackage %s;\n\n", file.Package())
	for i := 0; i < file.Services().Len(); i++ {
		s := file.Services().Get(i)
		fmt.Fprintf(&b, "service %s {\n", s.Name())
		for j := 0; j < s.Methods().Len(); j++ {
			m := s.Methods().Get(j)
			stream := ""
			if m.IsStreamingServer() {
				stream = "stream "
			}
			fmt.Fprintf(&b, "  rpc %s(%s) returns (%s%s);\n", m.Name(), m.Input().Name(), stream, m.Output().Name())
		}
		b.WriteString("}\n\n")
	}
	var enums []string
	for i := 0; i < file.Enums().Len(); i++ {
		enums = append(enums, protoEnum(file.Enums().Get(i), ""))
	}
	sort.Strings(enums)
	b.WriteString(strings.Join(enums, ""))
	var messages []string
	for i := 0; i < file.Messages().Len(); i++ {
		var m strings.Builder
		protoMessage(file.Messages().Get(i), &m)
		messages = append(messages, m.String())
	}
	sort.Strings(messages)
	b.WriteString(strings.Join(messages, ""))
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// plugins are what the kubelet and the plugins of its node speak, by file name.
var plugins = map[string]struct {
	file  protoreflect.FileDescriptor
	title string
}{
	"device_plugin":          {deviceplugin.File_staging_src_k8s_io_kubelet_pkg_apis_deviceplugin_v1beta1_api_proto, "device plugins, v1beta1"},
	"plugin_registration":    {registration.File_staging_src_k8s_io_kubelet_pkg_apis_pluginregistration_v1_api_proto, "the registration of plugins, v1"},
	"pod_resources":          {podresources.File_staging_src_k8s_io_kubelet_pkg_apis_podresources_v1_api_proto, "pod resources, v1"},
	"pod_resources_v1alpha1": {podresourcesalpha.File_staging_src_k8s_io_kubelet_pkg_apis_podresources_v1alpha1_api_proto, "pod resources, v1alpha1"},
}

// ---- object types ----

// scalars are the named Go types that travel as plain JSON values.
var scalars = map[string][2]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":            {"time", "string"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":       {"time", "string"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":        {"duration", "string"},
	"k8s.io/apimachinery/pkg/api/resource.Quantity":        {"quantity", "string"},
	"k8s.io/apimachinery/pkg/api/resource.QuantityValue":   {"quantity", "string"},
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":      {"intorstring", "number | string"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":        {"any", "unknown"},
	"k8s.io/apimachinery/pkg/runtime.RawExtension":         {"any", "unknown"},
	"k8s.io/component-base/logs/api/v1.TimeOrMetaDuration": {"flush", "string | number"},
}

// Types whose name another package's type has too.
var renamed = map[string]string{
	"k8s.io/api/storage/v1.TokenRequest": "CSITokenRequest",
}

type object struct {
	ts, schema string
	patch      string
	of         reflect.Type
}

func nameOf(t reflect.Type) string {
	if n, ok := renamed[t.PkgPath()+"."+t.Name()]; ok {
		return n
	}
	return t.Name()
}

var objects = map[string]object{}

func typeOf(t reflect.Type) (schema, ts string) {
	if t.Kind() == reflect.Pointer {
		return typeOf(t.Elem())
	}
	if s, ok := scalars[t.PkgPath()+"."+t.Name()]; ok {
		return s[0], s[1]
	}
	switch t.Kind() {
	case reflect.Struct:
		return structOf(t), nameOf(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", "string"
		}
		s, ts := typeOf(t.Elem())
		if strings.Contains(ts, " ") {
			ts = "(" + ts + ")"
		}
		return "[]" + s, ts + "[]"
	case reflect.Map:
		s, ts := typeOf(t.Elem())
		return "{}" + s, "Record<string, " + ts + ">"
	case reflect.Bool:
		return "bool", "boolean"
	case reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Int, reflect.Uint16:
		return strings.ToLower(t.Kind().String()), "number"
	case reflect.Float64:
		return "float", "number"
	}
	return "string", "string"
}

func fields(t reflect.Type, visit func(name string, optional bool, f reflect.StructField)) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && name == "" {
			fields(f.Type, visit)
			continue
		}
		visit(name, strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero") || f.Type.Kind() == reflect.Pointer, f)
	}
}

func structOf(t reflect.Type) string {
	name := nameOf(t)
	if o, ok := objects[name]; ok {
		if o.of != t {
			must(fmt.Errorf("two types are called %s: %v and %v; give one another name in renamed", name, o.of, t))
		}
		return name
	}
	objects[name] = object{of: t}
	var ts, schema, patch strings.Builder
	fmt.Fprintf(&ts, "export interface %s {\n", name)
	fmt.Fprintf(&schema, "  %s: {\n", name)
	fields(t, func(field string, optional bool, f reflect.StructField) {
		s, typ := typeOf(f.Type)
		mark, req := "?", ""
		if !optional {
			mark, req = "", "!"
		}
		fmt.Fprintf(&ts, "  %s%s: %s;\n", field, mark, typ)
		fmt.Fprintf(&schema, "    %s: \"%s%s\",\n", field, s, req)
		// a list that patches replace whole has no strategy, and a map or object needs none
		if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
			fmt.Fprintf(&patch, "    %s: { strategy: \"%s\", key: \"%s\" },\n", field, strategy, f.Tag.Get("patchMergeKey"))
		}
	})
	ts.WriteString("}\n\n")
	schema.WriteString("  },\n")
	objects[name] = object{ts.String(), schema.String(), patch.String(), t}
	return name
}

func main() {
	must(os.WriteFile(os.Args[1], []byte(protoText(cri.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto, "the Container Runtime Interface, v1")), 0o644))
	for name, of := range plugins {
		must(os.WriteFile(os.Args[5]+"/"+name+".proto", []byte(protoText(of.file, of.title)), 0o644))
	}
	for _, o := range []any{core.Pod{}, core.PodList{}, core.Node{}, core.Event{}, core.Secret{}, core.ConfigMap{}, core.Service{},
		coordination.Lease{}, kubelet.KubeletConfiguration{}, kubelet.SerializedNodeConfigSource{}, kubelet.CredentialProviderConfig{},
		core.PersistentVolume{}, core.PersistentVolumeClaim{}, storage.CSINode{}, core.PodLogOptions{},
		core.Namespace{}, core.ServiceAccount{}, authentication.TokenRequest{}, authentication.TokenReview{}, authorization.SubjectAccessReview{},
		certificates.CertificateSigningRequest{}, storage.VolumeAttachment{}, storage.CSIDriver{}, node.RuntimeClass{}, policy.Eviction{}} {
		structOf(reflect.TypeOf(o))
	}
	var names []string
	for n := range objects {
		names = append(names, n)
	}
	sort.Strings(names)
	ts := "// Kubernetes object types, v1.36: field names and JSON types. Written by scripts/gen; do not edit.\n\n"
	schema := "// The decoding schema of the types beside this file: `T!` is always present, `[]T` a list, `{}T` a map.\n// Written by scripts/gen; do not edit.\n\nexport const schema: Record<string, Record<string, string>> = {\n"
	patch := "// How a strategic merge patch reads the fields of the types beside this file: its strategy, and the field that tells\n// members of a list apart (empty for plain values). Fields that are not here are replaced whole, or merged as maps.\n// Written by scripts/gen; do not edit.\n\nexport const patchFields: Record<string, Record<string, { strategy: string; key: string }>> = {\n"
	for _, n := range names {
		ts += objects[n].ts
		schema += objects[n].schema
		if objects[n].patch != "" {
			patch += "  " + n + ": {\n" + objects[n].patch + "  },\n"
		}
	}
	must(os.WriteFile(os.Args[2], []byte(strings.TrimRight(ts, "\n")+"\n"), 0o644))
	must(os.WriteFile(os.Args[3], []byte(schema+"};\n"), 0o644))
	must(os.WriteFile(os.Args[4], []byte(patch+"};\n"), 0o644))
}
